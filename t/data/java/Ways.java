// SPDX-License-Identifier: GPL-2.0-or-later
// Threads that block in many ways, each some frames of Java deep. jstack knows where.
import java.util.concurrent.*;
import java.util.concurrent.locks.LockSupport;
public class Ways {
	static final Object lock = new Object(), held = new Object();
	interface Wait { void now() throws Exception; }
	static void deep(int n, Wait w) throws Exception { if (n > 0) deep(n - 1, w); else for (;;) w.now(); }
	static void enters() { synchronized (held) { System.out.println("never"); } }
	// compiled as if there were no other stay(), which is loaded when a thread waits in this one
	static class Base { void stay() throws Exception { Thread.sleep(100000); } }
	static class Other extends Base { void stay() { } }
	static Base base = new Base();
	static Thread start(String name, int n, Wait w) {
		Thread t = new Thread(() -> { try { deep(n, w); } catch (Exception e) { e.printStackTrace(); } }, name);
		t.setDaemon(true);
		t.start();
		return t;
	}
	public static void main(String[] a) throws Exception {
		start("sleeps", 0, () -> Thread.sleep(100000));
		start("deep", 300, () -> Thread.sleep(100000));
		start("waits", 3, () -> { synchronized (lock) { lock.wait(); } });
		start("parks", 7, () -> LockSupport.park());
		java.net.ServerSocket server = new java.net.ServerSocket(0);
		java.net.Socket client = new java.net.Socket("127.0.0.1", server.getLocalPort());
		start("socket", 2, () -> client.getInputStream().read());
		start("fifo", 2, () -> System.in.read());
		start("queue", 4, () -> new LinkedBlockingQueue<Integer>().take());
		start("future", 1, () -> new CompletableFuture<Integer>().get());
		Process p = new ProcessBuilder("sleep", "1000").start();
		Runtime.getRuntime().addShutdownHook(new Thread(() -> p.destroyForcibly()));
		start("process", 1, () -> p.waitFor());
		Thread stays = start("stays", 2, () -> base.stay());
		while (stays.getState() != Thread.State.TIMED_WAITING) Thread.sleep(10);
		base = new Other();
		start("naps", 5, () -> Thread.sleep(30));
		synchronized (held) { start("enters", 3, Ways::enters); System.out.println("ready"); System.out.flush(); Thread.sleep(1000000); }
	}
}
