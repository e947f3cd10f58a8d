// SPDX-License-Identifier: GPL-2.0-or-later
// java Waits SECONDS FILE: threads that wait for time, a lock, a pipe, a disk and a process.
import java.io.*;
import java.nio.ByteBuffer;
import java.nio.channels.*;
import java.nio.file.*;
import java.util.concurrent.*;

public class Waits {
	interface Work {
		void once() throws Exception;
	}

	static final Object lock = new Object();
	static final BlockingQueue<Integer> queue = new LinkedBlockingQueue<>();

	static void sleeps() throws Exception {
		Thread.sleep(2);
	}

	static void locks() throws Exception {
		synchronized (lock) {
			Thread.sleep(1);
		}
	}

	static void takes() throws Exception {
		queue.poll(20, TimeUnit.MILLISECONDS);
	}

	static void puts() throws Exception {
		Thread.sleep(1);
		queue.put(1);
	}

	static void runs() throws Exception {
		new ProcessBuilder("true").start().waitFor();
	}

	public static void main(String[] args) throws Exception {
		long end = System.nanoTime() + (long) (Double.parseDouble(args[0]) * 1e9);
		FileChannel file = FileChannel.open(Paths.get(args[1]), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
		Pipe pipe = Pipe.open();
		Work syncs = () -> {
			file.write(ByteBuffer.allocate(10000), 0);
			file.force(true);
			Thread.sleep(1);
		};
		Work reads = () -> pipe.source().read(ByteBuffer.allocate(1));
		Work writes = () -> {
			Thread.sleep(1);
			pipe.sink().write(ByteBuffer.allocate(1));
		};
		for (Work work : new Work[] { Waits::sleeps, Waits::locks, Waits::locks, Waits::takes, Waits::puts, Waits::runs, syncs, writes, reads }) {
			Thread t = new Thread(() -> {
				try {
					while (System.nanoTime() < end)
						work.once();
				} catch (Exception e) {
					e.printStackTrace();
				}
			});
			t.setDaemon(work == reads);
			t.start();
		}
	}
}
