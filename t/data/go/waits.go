// SPDX-License-Identifier: GPL-2.0-or-later

// waits - goroutines that wait in many ways. Those that block their thread say
// where they wait, as the runtime sees it:
//
//	stack NAME FUNCTION;FUNCTION;...	innermost first, without inlined calls
//
// and then the program prints "ready". It ends when its stdin does.
package main

/*
#include <unistd.h>

extern void calledFromC(int);

static char byte;

// waits for a pipe that nothing writes to
static int pause_in_c(int fd)
{
	return (int)read(fd, &byte, 1);
}

static void call_back(int left)
{
	calledFromC(left);
}
*/
import "C"

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

var waiting sync.WaitGroup

// say prints the callers of the function that calls it, which then blocks in a
// function named LAST.
func say(name string, last ...string) {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		last = append(last, f.Function)
		if !more {
			break
		}
	}
	fmt.Println("stack " + name + " " + strings.Join(last, ";"))
	waiting.Done()
}

func silence() int {
	var p [2]int
	if err := syscall.Pipe(p[:]); err != nil {
		panic(err)
	}
	return p[0]
}

//go:noinline
func readInSyscall(name string, fd int) {
	var b [1]byte
	say(name, "syscall.Syscall", "syscall.read")
	syscall.Read(fd, b[:])
}

//go:noinline
func readInC(name string, fd C.int) {
	say(name, "runtime.cgocall", "main._Cfunc_pause_in_c")
	C.pause_in_c(fd)
}

//export calledFromC
func calledFromC(left C.int) {
	if left > 0 {
		C.call_back(left - 1)
	} else {
		readInC("callback", C.int(silence()))
	}
}

//go:noinline
func recurse(left int, wait func()) {
	if left > 0 {
		recurse(left-1, wait)
	} else {
		wait()
	}
	runtime.KeepAlive(left)
}

func start(blocks bool, f func()) {
	if blocks {
		waiting.Add(1)
	}
	go f()
}

func main() {
	var mutex sync.Mutex
	mutex.Lock()
	start(true, func() { readInSyscall("read", silence()) })
	start(true, func() { readInC("cgo", C.int(silence())) })
	start(true, func() { C.call_back(2) })
	start(true, func() { recurse(40, func() { readInSyscall("deep", silence()) }) })
	start(true, func() {
		runtime.LockOSThread()
		readInC("locked", C.int(silence()))
	})
	start(false, func() { <-make(chan int) })
	start(false, func() { mutex.Lock() })
	start(false, func() { select {} })
	start(false, func() {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err == nil {
			listener.Accept()
		}
	})
	start(false, func() {
		runtime.LockOSThread() // the child ends with the thread that has started it
		child := exec.Command("sleep", "1000")
		child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		child.Run()
	})
	start(false, func() {
		for {
			time.Sleep(2 * time.Millisecond)
		}
	})
	start(false, func() {
		for {
			time.Sleep(5 * time.Millisecond)
			runtime.GC()
		}
	})
	start(false, func() {
		file, err := os.CreateTemp("", "go-waits")
		if err != nil {
			return
		}
		os.Remove(file.Name())
		for {
			file.WriteAt(make([]byte, 1<<16), 0)
			file.Sync()
			time.Sleep(time.Millisecond)
		}
	})
	start(false, func() { // preempted by signals
		for {
			for i := 0; i < 1e8; i++ {
			}
			runtime.Gosched()
		}
	})
	waiting.Wait()
	fmt.Println("ready")
	os.Stdin.Read(make([]byte, 1))
}
