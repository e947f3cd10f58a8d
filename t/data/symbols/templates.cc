// SPDX-License-Identifier: GPL-2.0-or-later
// Templates, lambdas, constructors and names of internal linkage, with the standard library inlined into them.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace {
struct base {
	virtual ~base() = default;
	virtual int of(int) const = 0;
};

template <int N> struct times : base {
	std::vector<int> seen;
	int of(int v) const override
	{
		return std::count_if(seen.begin(), seen.end(), [v](int s) { return s > v * N; }) + v * N;
	}
	explicit times(int n)
	{
		for (int i = 0; i < n; i++)
			seen.push_back(i * N % 7);
	}
};

template <typename T> int total(const std::vector<std::unique_ptr<T>> &all, int v)
{
	int sum = 0;
	for (auto &one : all)
		sum += one->of(v);
	return sum;
}
}

namespace text {
std::string joined(const std::vector<std::string> &parts, char with)
{
	std::string all;
	for (auto &p : parts) {
		if (!all.empty())
			all += with;
		all += p;
	}
	return all;
}
}

int main(int argc, char **)
{
	std::vector<std::unique_ptr<base>> all;
	all.push_back(std::make_unique<times<2>>(argc));
	all.push_back(std::make_unique<times<3>>(argc + 1));
	std::vector<std::string> words;
	for (int i = 0; i < argc + 3; i++)
		words.push_back(std::to_string(i));
	std::sort(words.begin(), words.end(), [](const auto &a, const auto &b) { return b < a; });
	std::puts(text::joined(words, '-').c_str());
	return total(all, argc) > 1000;
}
