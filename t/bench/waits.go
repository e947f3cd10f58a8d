// SPDX-License-Identifier: GPL-2.0-or-later
// waits SECONDS FILE: goroutines that wait for time, a lock, a pipe, a disk and a process.
package main

import (
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

func main() {
	seconds, err := strconv.ParseFloat(os.Args[1], 64)
	if err != nil {
		panic(err)
	}
	end := time.Now().Add(time.Duration(seconds * 1e9))
	var lock sync.Mutex
	r, w, _ := os.Pipe()
	work := []func(){
		func() { time.Sleep(2 * time.Millisecond) },
		func() { lock.Lock(); time.Sleep(time.Millisecond); lock.Unlock() },
		func() { lock.Lock(); time.Sleep(time.Millisecond); lock.Unlock() },
		func() { time.Sleep(time.Millisecond); w.Write([]byte("x")) },
		func() {
			f, err := os.Create(os.Args[2])
			if err != nil {
				panic(err)
			}
			f.Write(make([]byte, 10000))
			f.Sync()
			f.Close()
		},
		func() { exec.Command("true").Run() },
	}
	go func() {
		for b := make([]byte, 1); ; {
			r.Read(b)
		}
	}()
	var all sync.WaitGroup
	for _, f := range work {
		all.Add(1)
		go func(f func()) {
			for time.Now().Before(end) {
				f()
			}
			all.Done()
		}(f)
	}
	all.Wait()
}
