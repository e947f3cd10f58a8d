// SPDX-License-Identifier: GPL-2.0-or-later
// Virtual FIFO: two virtual threads that read from it, which keeps their carriers. One has always run;
// the other slept before, so that most of its frames are in the heap.
import java.io.FileInputStream;

public class Virtual {
	static void deep(int n, int sleeps, String file) throws Exception {
		if (n > 0) {
			deep(n - 1, sleeps, file);
		} else {
			for (int i = 0; i < sleeps; i++) Thread.sleep(2);
			try (FileInputStream in = new FileInputStream(file)) { in.read(); }
		}
	}
	static Thread start(String name, int n, int sleeps, String file) {
		return Thread.ofVirtual().name(name).start(() -> {
			try { deep(n, sleeps, file); } catch (Exception e) { e.printStackTrace(); }
		});
	}
	public static void main(String[] a) throws Exception {
		start("pinned", 20, 0, a[0]);
		start("resumed", 200, 3, a[0]);
		System.out.println("ready");
		Thread.sleep(1000000);
	}
}
