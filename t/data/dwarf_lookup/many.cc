/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inlined templates, lambdas in lambdas, a local class, code in several sections. */
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace outer
{
namespace
{
struct base {
	virtual ~base() = default;
	virtual int f(int) = 0;
};

struct derived : base {
	int k;
	explicit derived(int x) : k(x) {}
	int f(int x) override { return x * k + 1; }
};
} // namespace

template <class T> struct sum {
	T value{};
	void add(const T &v) { value += v; }
};

int lambdas(int n)
{
	struct local {
		int v;
		int twice() const
		{
			volatile int q = v;
			return q * 2;
		}
		static int three(int z)
		{
			volatile int w = z;
			return w + 3;
		}
	} l{ n };
	auto f = [&](int x) {
		auto g = [x](int y) {
			volatile int z = x * y;
			return z;
		};
		return g(x) + l.twice() + local::three(x);
	};
	std::function<int(int)> h = f;

	return h(n) + f(n + 1);
}
} // namespace outer

int main(int argc, char **argv)
{
	std::map<std::string, std::vector<int>> m;
	outer::sum<double> a;
	outer::sum<std::string> s;
	std::unique_ptr<outer::base> b(new outer::derived(argc));

	for (int i = 0; i < argc * 100; i++)
		m[std::to_string(i % 17)].push_back(i);
	for (auto &p : m) {
		std::sort(p.second.begin(), p.second.end(), [](int x, int y) { return x % 7 < y % 7; });
		a.add((double)p.second.size());
		s.add(p.first + argv[0]);
	}
	try {
		if (argc > 100)
			throw s.value;
	} catch (std::string &e) {
		puts(e.c_str());
	}
	printf("%f %d %d\n", a.value, b->f(3), outer::lambdas(argc));
}
