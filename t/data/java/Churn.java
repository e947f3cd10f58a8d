// SPDX-License-Identifier: GPL-2.0-or-later
// Churn ROUNDS: loads class after class, each with a name of its own and otherwise alike, calls its
// method, which waits once, and drops it, so that the memory of methods and classes is used again.
// Prints how many were unloaded.
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;

public class Churn {
	public interface Waiter { void run(); }
	static final class Loader extends ClassLoader {
		Class<?> define(String name, byte[] b) { return defineClass(name, b, 0, b.length); }
	}
	// compiled without lines: the exception table follows the code at once, and its first byte is not 0
	public static void nap() {
		int n = 300;
		try { Thread.sleep(1); } catch (InterruptedException e) { throw new RuntimeException(e); }
	}
	// every "00000" in the class file is part of its names
	static byte[] renamed(byte[] of, String number) {
		byte[] b = of.clone(), to = number.getBytes(StandardCharsets.US_ASCII);
		for (int i = 0; i + 5 <= b.length; i++) {
			boolean here = true;
			for (int k = 0; k < 5; k++) here &= b[i + k] == '0';
			if (here) System.arraycopy(to, 0, b, i, 5);
		}
		return b;
	}
	public static void main(String[] a) throws Exception {
		int rounds = Integer.parseInt(a[0]);
		byte[] of;
		try (InputStream in = Churn.class.getResourceAsStream("T00000.class")) { of = in.readAllBytes(); }
		System.out.println("ready");
		System.out.flush();
		System.in.read();
		for (int i = 1; i <= rounds; i++) {
			String number = String.format("%05d", i);
			Class<?> made = new Loader().define("T" + number, renamed(of, number));
			java.lang.reflect.Constructor<?> c = made.getDeclaredConstructor();
			c.setAccessible(true);
			Waiter w = (Waiter) c.newInstance();
			w.run();
			if (i % 100 == 0) System.gc();
		}
		System.out.println(ManagementFactory.getClassLoadingMXBean().getUnloadedClassCount());
		System.out.flush();
		System.in.read();
	}
}
class T00000 implements Churn.Waiter {
	public T00000() { }
	public void run() { m00000(); }
	void m00000() { Churn.nap(); }
}
