// SPDX-License-Identifier: GPL-2.0-or-later
// condvar - main and two threads of a C++ program without frame pointers wait
// for condition variables, each for 20 ms, again and again.
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace
{
struct queue {
	std::mutex lock;
	std::condition_variable filled;
	std::vector<int> items;

	bool take()
	{
		std::unique_lock<std::mutex> hold(lock);

		return filled.wait_for(hold, std::chrono::milliseconds(20), [this] { return !items.empty(); });
	}
};

void consume(queue &q)
{
	while (!q.take())
		;
}
} // namespace

int main()
{
	queue q;
	std::thread one(consume, std::ref(q)), two([&q] { consume(q); });

	consume(q);
	one.join();
	two.join();
}
