// SPDX-License-Identifier: GPL-2.0-or-later

// plain - a program without cgo that blocks one thread in a system call.
package main

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

//go:noinline
func readInSyscall() {
	var p [2]int
	var b [1]byte
	if syscall.Pipe(p[:]) == nil {
		syscall.Read(p[0], b[:])
	}
}

func main() {
	go readInSyscall()
	go func() {
		for {
			time.Sleep(2 * time.Millisecond)
		}
	}()
	fmt.Println("ready")
	os.Stdin.Read(make([]byte, 1))
}
