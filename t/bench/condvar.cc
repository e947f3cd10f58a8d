// SPDX-License-Identifier: GPL-2.0-or-later
// condvar - a C++ program without frame pointers whose main thread and two other
// threads repeatedly wait for a condition variable, 20 ms each time.
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
