// SPDX-License-Identifier: GPL-2.0-or-later
// Functions whose names have brackets in all places that C++ has for them; names only, it is not run.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#define KEPT __attribute__((noinline, used))

namespace ns
{
struct S {
	typedef void (*F)(int);
	int v;

	KEPT int m(int x) const { return v + x; }
	KEPT int lvalue(char) & { return v; }
	KEPT int n(char) && { return v; }
	KEPT int volatile_one(char) volatile noexcept { return 1; }
	KEPT int operator()(int x) const { return v + x; }
	template <class T> KEPT T operator()(T a, T) { return a; }
	KEPT bool operator<(const S &o) const { return v < o.v; }
	KEPT bool operator>(const S &o) const { return v > o.v; }
	KEPT bool operator<=(const S &o) const { return v <= o.v; }
	KEPT bool operator>=(const S &o) const { return v >= o.v; }
	KEPT S &operator<<(int x) { v <<= x; return *this; }
	KEPT S &operator>>(int x) { v >>= x; return *this; }
	KEPT S &operator<<=(int x) { v <<= x; return *this; }
	KEPT S &operator>>=(int x) { v >>= x; return *this; }
	KEPT S *operator->() { return this; }
	KEPT S *operator->*(int) { return this; }
	KEPT int operator[](int i) { return i + v; }
	KEPT S operator,(int) { return *this; }
	KEPT S operator~() { return *this; }
	KEPT bool operator!() { return !v; }
	KEPT S operator+(const S &o) const { return S{ v + o.v }; }
	KEPT S operator-(const S &o) const { return S{ v - o.v }; }
	KEPT S operator&(int) { return *this; }
	KEPT S operator&&(int) { return *this; }
	KEPT operator bool() const { return v; }
	KEPT operator const char *() const { return "x"; }
	KEPT operator std::vector<int> *() const { return nullptr; }
	KEPT operator F() const { return nullptr; }
	KEPT static void *operator new[](size_t n) { return ::operator new(n); }
	KEPT static void operator delete[](void *p) { ::operator delete(p); }
	KEPT ~S() { v = 0; }
};

template <class T> struct C {
	T v;
	KEPT bool operator<(const C &o) const { return v < o.v; }
	template <class U> KEPT bool operator==(U) const { return true; }
	template <class U> KEPT bool operator<<(U) const { return true; }
	template <class U> KEPT bool operator<(U) const { return true; }
};

template <bool B> struct If {
	KEPT int get(int) { return B; }
};

struct L {
	KEPT int run(int k) const
	{
		auto outer = [k](int a) {
			auto inner = [a](char b) { return a + b; };
			return inner(1) + k;
		};
		return outer(k);
	}
};

enum class E { A = 3 };

template <class F, class... A> KEPT int f(int a, char const *b, F g, A...) { return g(a) + *b; }
template <int (*P)(char), class V> KEPT int by_pointer(int, char const *) { return P(1); }
template <char X> KEPT int by_char(int) { return X; }
template <int N> KEPT int by_number(int) { return N; }
template <E e> KEPT int by_enum(int) { return (int)e; }
template <class T> KEPT auto by_decltype(T a) -> decltype(a + 1) { return a; }
template <class T> KEPT If<(sizeof(T) > 2)> by_size(T) { return {}; }
template <class T> KEPT void (*gives_function(T))(char) { return nullptr; }
template <class T> KEPT int (&gives_array(T))[3] { static int x[3]; return x; }
KEPT int g(char) { return 1; }
KEPT int h(int (*p)(char), int (&a)[3], void (S::*)(int)) { return p(1) + a[0]; }
KEPT int operator"" _s(const char *, size_t n) { return (int)n; }
KEPT __attribute__((abi_tag("v2"))) int tagged(int) { return 1; }

namespace
{
KEPT int inner(int (*)(char)) { return 2; }
}
}

namespace
{
struct Hidden {
	KEPT int go(int x) { return x; }
	KEPT static int st() { return 1; }
};
KEPT int hidden(Hidden *h) { return h->go(1); }
}

KEPT int with_local(int a)
{
	struct In {
		KEPT int m(int b) { return b; }
	} i;
	return i.m(a);
}

int main(int argc, char **)
{
	using namespace ns;
	S s{ argc }, t{ 2 };
	C<int> c{ 1 }, d{ 2 };
	Hidden hid;
	int array[3] = { 1, 2, 3 }, r = 0;
	std::map<std::string, std::vector<S>> map;
	std::function<int(int)> fn = [&r](int a) { return a + r; };
	auto generic = [](auto a, auto... b) { return (int)a + (int)sizeof...(b); };

	s << 1, s >> 1, s <<= 1, s >>= 1;
	r += s.m(1) + s.lvalue(1) + S{ 1 }.n('c') + s(1) + (s < t) + (s > t) + (s <= t) + (s >= t);
	r += s->v + (s->*1)->v + s[1] + (~s).v + !s + (s + t).v + (s - t).v + (s & 1).v + (s && 1).v;
	r += (bool)s + *(const char *)s + ((std::vector<int> *)s != nullptr) + ((S::F)s != nullptr);
	delete[] new S[2]{ { 1 }, { 2 } };
	s('a', 'b');
	r += (c < d) + (c == 1.0) + (c << 'x') + (c < 'x');
	r += f(1, "x", [](int a) { return a; }, 1.5, std::string()) + f(1, "y", g);
	r += by_pointer<g, std::vector<int>>(1, "x") + If<(1 > 0)>().get(1) + If<false>().get(1);
	r += by_char<'('>(1) + by_char<'<'>(1) + by_number<-1>(1) + by_enum<E::A>(1);
	r += by_decltype(1.5) + by_size(1).get(1) + h(g, array, nullptr) + L().run(3) + "abc"_s;
	gives_function(1), gives_array('c');
	r += hidden(&hid) + Hidden::st() + inner(g) + with_local(1) + tagged(1) + fn(3);
	map["a"];
	return r + std::make_unique<S>()->v + generic(1) + generic('c', 2L);
}
