// SPDX-License-Identifier: GPL-2.0-or-later
// JavaStack: a thread that waits as often as it can, 20 distinct methods of Java
// deep: main, m2 to m18, LockSupport.parkNanos and Unsafe.park, for scripts/bench.d/python.
import java.util.concurrent.locks.LockSupport;
public class JavaStack {
	static void m2(long n) { m3(n + 1); }
	static void m3(long n) { m4(n + 1); }
	static void m4(long n) { m5(n + 1); }
	static void m5(long n) { m6(n + 1); }
	static void m6(long n) { m7(n + 1); }
	static void m7(long n) { m8(n + 1); }
	static void m8(long n) { m9(n + 1); }
	static void m9(long n) { m10(n + 1); }
	static void m10(long n) { m11(n + 1); }
	static void m11(long n) { m12(n + 1); }
	static void m12(long n) { m13(n + 1); }
	static void m13(long n) { m14(n + 1); }
	static void m14(long n) { m15(n + 1); }
	static void m15(long n) { m16(n + 1); }
	static void m16(long n) { m17(n + 1); }
	static void m17(long n) { m18(n + 1); }
	static void m18(long n) { for (;;) LockSupport.parkNanos(n); }
	public static void main(String[] a) { m2(0); }
}
