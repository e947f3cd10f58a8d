// SPDX-License-Identifier: GPL-2.0-or-later
// One of four units of a program that uses templates of the standard library, for their inlined calls.
#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#ifndef PART
#define PART 0
#endif
#define CAT2(a, b) a##b
#define CAT(a, b) CAT2(a, b)

namespace {
template <int N> struct node {
	std::map<std::string, std::vector<double>> table;
	std::variant<int, std::string, std::vector<int>> any;
	double sum(const std::string &key) const
	{
		auto it = table.find(key);
		return it == table.end() ? N : std::accumulate(it->second.begin(), it->second.end(), double(N));
	}
	int weigh()
	{
		return std::visit([](auto &v) -> int {
			using T = std::decay_t<decltype(v)>;
			if constexpr (std::is_same_v<T, int>)
				return v * N;
			else
				return int(v.size()) + N;
		}, any);
	}
};
template <int N> int grow(std::mt19937 &rng)
{
	node<N> n;
	std::unordered_map<int, std::deque<int>> heap;
	for (int i = 0; i < N + 3; i++) {
		n.table["k" + std::to_string(i % 7)].push_back(rng() % 100);
		heap[i % 5].push_back(i);
	}
	n.any = std::vector<int>(N + 1, 2);
	std::vector<std::string> words;
	for (auto &[k, v] : n.table)
		words.push_back(k + std::to_string(v.size()));
	std::sort(words.begin(), words.end(), [](const auto &a, const auto &b) { return a.size() != b.size() ? a.size() < b.size() : a > b; });
	std::set<std::string, std::greater<>> distinct(words.begin(), words.end());
	return int(n.sum("k1")) + n.weigh() + int(distinct.size()) + int(heap[0].size());
}
template <int... N> int all(std::mt19937 &rng, std::integer_sequence<int, N...>)
{
	return (grow<N + PART * 100>(rng) + ... + 0);
}
}

int CAT(part, PART)(std::mt19937 &rng)
{
	std::smatch m;
	std::string text = "key=" + std::to_string(PART);
	if (std::regex_match(text, m, std::regex("([a-z]+)=([0-9]+)")))
		std::cout << m[1] << m[2] << '\n';
	return all(rng, std::make_integer_sequence<int, 12>());
}

#if PART == 0
int part1(std::mt19937 &), part2(std::mt19937 &), part3(std::mt19937 &);

int main()
{
	std::mt19937 rng(1);

	return part0(rng) + part1(rng) + part2(rng) + part3(rng) == 12345;
}
#endif
