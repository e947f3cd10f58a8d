/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of fold/balanced.h. Each name is placed next to an inaccessible page, so that a read past it faults.
 */
#include "base/tap.h"
#include "fold/balanced.h"

#include "../lib/edge.h"

static struct tap t;
static void cut(const char *name, const char *want)
{
	char got[256], *p = edge_end(name);

	snprintf(got, sizeof(got), "%.*s", (int)balanced_cut(p, strlen(name)), p);
	tap_eq_str(&t, got, want, name);
	p = edge_start(name);
	snprintf(got, sizeof(got), "%.*s", (int)balanced_cut(p, strlen(name)), p);
	tap_ok(&t, strcmp(got, want) == 0, "the same at the start of a page");
}

static void stays(const char *name)
{
	cut(name, name);
}

/* WANT has the functions of the chain, each behind a "|". */
static void chain(const char *name, const char *want)
{
	struct perfscript_str f;
	struct balanced b;
	char got[256] = "";
	size_t n = 0;

	balanced_chain(&b, edge_end(name), strlen(name));
	while (balanced_next(&b, &f))
		n += (size_t)snprintf(got + n, sizeof(got) - n, "|%.*s", (int)f.len, f.p);
	tap_eq_str(&t, got, want, name[0] ? name : "no name is not a chain");
}

static void cpp(void)
{
	cut("f(int)", "f");
	cut("ns::f<int (*)(char), std::vector<int>>(int, char const*) const",
		"ns::f<int (*)(char), std::vector<int>>");
	cut("main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()");
	cut("f(int)::{lambda()#1}::operator()() const::{lambda()#2}::operator()() const",
		"f(int)::{lambda()#1}::operator()() const::{lambda()#2}::operator()");
	cut("main::'lambda'(int)::operator()(int) const", "main::'lambda'(int)::operator()");
	cut("f(int)::S::g(char)", "f(int)::S::g");
	cut("(anonymous namespace)::f((anonymous namespace)::T*)", "(anonymous namespace)::f");
	cut("f[abi:cxx11](int)", "f[abi:cxx11]");
	cut("std::function<void (int)>::operator()(int) const", "std::function<void (int)>::operator()");
	cut("f<(1>2)>(int)", "f<(1>2)>");
	cut("f<(1<2)>(int)", "f<(1<2)>");
	cut("f<'('>(int)", "f<'('>");
	cut("f<'<', '\\''>(int)", "f<'<', '\\''>");
	cut("f<&X::operator< >(int)", "f<&X::operator< >");
	cut("decltype (a->b) f<int>(int)", "decltype (a->b) f<int>");
	cut("main::'unnamed'::'unnamed'(int)", "main::'unnamed'::'unnamed'");
	cut("{unnamed type#1}::{unnamed type#1}(int)", "{unnamed type#1}::{unnamed type#1}");
	cut("f$(int)", "f$");
	cut("\303\251(int)", "\303\251");
	stays("f~(int)");
	stays("f");
	stays("ns::(anonymous namespace)");
	stays("guard variable for f(int)::x");
	stays("main()::<lambda(int)>");
	stays("void (*f<int>(int))(char)");
	stays("int (&f<int>())[3]");
}

static void operators(void)
{
	static const char *const all[] = { "operator()", "operator[]", "operator<", "operator<<",
		"operator<<=", "operator<=", "operator<=>", "operator>", "operator>>",
		"operator>>=", "operator>=", "operator->", "operator->*", "operator+", "operator-",
		"operator,", "operator~", "operator!", "operator&&", "operator=", "operator new",
		"operator new[]", "operator delete[]", "operator bool", "operator char const*",
		"operator X<int>&", "operator void (*)(int)", "operator\"\" _s", "operator< <int>",
		"operator<< <int>", "operator<<int>" };
	char name[256], want[128], chained[256];

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		snprintf(want, sizeof(want), "ns::X::%s", all[i]);
		snprintf(name, sizeof(name), "%s(ns::X const&, int (*)(char)) const", want);
		cut(name, want);
		stays(want);
		snprintf(name, sizeof(name), "%s->g", want);
		snprintf(chained, sizeof(chained), "|%s|g", want);
		chain(name, chained);
	}
	cut("my_operator<int>(int)", "my_operator<int>");
	stays("k8s.io/operator.(*T)");
	stays("operator new (x)");
	stays("X::operator+(int)::(anonymous namespace)");
	stays("f<X::operator+>~(int)");
	chain("f<&X::operator<=>, a->b>->g", "|f<&X::operator<=>, a->b>|g");
	chain("f<&X::operator>>, a->b>->g", "|f<&X::operator>>, a->b>|g");
	chain("my_operator<fn()->T>->g", "|my_operator<fn()->T>|g");
}

static void tails(void)
{
	cut("f(int) const &", "f");
	cut("f(int) &&", "f");
	cut("f(int) restrict __restrict", "f");
	cut("f(int) const volatile noexcept", "f");
	cut("f(int) [clone .isra.0] [clone .cold]", "f [clone .isra.0] [clone .cold]");
	cut("f(int) const [clone .part.0]", "f [clone .part.0]");
	cut("f(int) (.llvm.123)", "f (.llvm.123)");
	cut("f(int)@plt", "f@plt");
	stays("f(int) constant");
	stays("f(int) requires C<int>");
	stays("f(int) [clone ");
	stays("f(int) (.");
	stays("Lorg/C;.call(Lorg/C;)Ljava/lang/Object;");
}

static void others(void)
{
	stays("<T as core::ops::FnOnce<Args>>::call_once{{vtable.shim}}");
	stays("<fn() -> T as core::ops::FnOnce<()>>::call_once");
	stays("<(A, B) as core::fmt::Debug>::fmt");
	stays("Ljava/lang/Thread;::sleep");
	stays("main.(*T).Method");
	stays("net/http.(*Client).Do-fm");
	stays("main.Map[go.shape.int,func(int) int]");
	stays("finish_task_switch.isra.0");
	stays("py::<lambda>:/opt/x (1).py");
	stays("JS:RegExp (a)");
	stays("Foo.bar(x: Swift.Int) -> Swift.Int");
	stays("");
}

static void unbalanced(void)
{
	stays("f(int");
	stays("f)int(");
	stays("f((((");
	stays("()");
	stays("(x)");
	cut("a>b(int)", "a>b");
	cut("a<b(int)", "a<b");
	cut("a[<b(int)", "a[<b");
	stays("a[<b(int)]");
	chain("a<b->c", "|a<b|c");
	chain("a(b->c", "|a(b|c");
	chain("a<b)->c", "|a<b)|c");
	chain("a[b>->c", "|a[b>|c");
	chain("a((b->c)->d(", "|a((b->c)|d(");
}

static void chains(void)
{
	chain("", "");
	chain("a", "|a");
	chain("a->b->c", "|a|b|c");
	chain("->a", "||a");
	chain("a->", "|a");
	chain("a->->", "|a");
	chain("->", "");
	chain("a->->b", "|a||b");
	chain("S::operator->", "|S::operator->");
	chain("S::operator->->", "|S::operator->");
	chain("S::operator->()->g", "|S::operator->()|g");
	chain("f<(a->b)>->g", "|f<(a->b)>|g");
	chain("f<(a>b), c->d>->g", "|f<(a>b), c->d>|g");
	chain("f<(a<b), c->d>->g", "|f<(a<b), c->d>|g");
	chain("f<(a<b<c), d->e>->g", "|f<(a<b<c), d->e>|g");
	chain("f{a->b}->c", "|f{a->b}|c");
	chain("f[a->b]->c", "|f[a->b]|c");
	chain("f<'>', a->b>->g", "|f<'>', a->b>|g");
	chain("f<'\\'','>',a->b>->g", "|f<'\\'','>',a->b>|g");
	chain("<fn() -> T>::f->g", "|<fn() -> T>::f|g");
	chain("f() -> T", "|f() -> T");
}

/* N times OPEN, "f->g(int)", N times CLOSE: how much is left. */
static void deep(char open, char close, size_t n, bool is_cut)
{
	const char middle[] = "f->g(int)", end[] = "(int)";
	size_t len = 2 * n + strlen(middle) + strlen(end), functions = 0;
	struct perfscript_str f;
	struct balanced b;
	char *name = malloc(len);

	if (!name)
		exit(99);
	memset(name, open, n);
	memcpy(name + n, middle, strlen(middle));
	memset(name + n + strlen(middle), close, n);
	memcpy(name + len - strlen(end), end, strlen(end));
	for (balanced_chain(&b, name, len); balanced_next(&b, &f); functions++)
		;
	tap_ok(&t, functions == 1, "%zu nested %c%c: one function", n, open, close);
	tap_ok(&t, balanced_cut(name, len) == (is_cut ? len - strlen(end) : len), "they are %s",
		is_cut ? "cut" : "not cut");
	free(name);
}

int main(void)
{
	cpp();
	operators();
	tails();
	others();
	unbalanced();
	chains();
	deep('<', '>', 10, true);
	deep('[', ']', BALANCED_DEPTH - 1, true);
	deep('<', '>', BALANCED_DEPTH, false);
	deep('(', ')', 1 << 20, false);
	return tap_done(&t);
}
