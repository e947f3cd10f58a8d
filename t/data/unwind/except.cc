/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * C++: threads that wait inside a catch block, a destructor that runs while an
 * exception passes, a condition variable's predicate, the terminate handler,
 * and before main in a constructor of a global object.
 *
 *   except [early]   early: block before main
 */
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "work.h"

namespace
{
volatile int many = 3;
std::mutex lock;
std::condition_variable never;
} // namespace

extern "C" {

FN int fn_throws(int n)
{
	if (n > 1)
		throw std::runtime_error("thrown");
	return n;
}

FN int fn_passes(int n)
{
	std::string s(static_cast<size_t>(n) * 20, 'x');
	int r = fn_throws(n);

	KEEP();
	return r + static_cast<int>(s.size());
}

FN int fn_catches(int n)
{
	try {
		return fn_passes(n);
	} catch (const std::exception &e) {
		block();
		return e.what()[0];
	}
}

FN int fn_rethrows(int n)
{
	try {
		return fn_passes(n);
	} catch (const std::exception &) {
		try {
			throw;
		} catch (const std::runtime_error &) {
			block();
			return 2;
		}
	}
}

FN void fn_in_destructor()
{
	block();
}

FN void fn_terminated()
{
	block();
	std::_Exit(1);
}

FN void fn_predicate()
{
	block();
}

FN void fn_early()
{
	chain("fn_early");
	block();
}
}

namespace
{
struct blocks_at_end {
	~blocks_at_end()
	{
		fn_in_destructor();
		KEEP();
	}
};

struct blocks_early {
	blocks_early()
	{
		const char *mode = std::getenv("EXCEPT_EARLY");

		if (mode && *mode)
			fn_early();
		KEEP();
	}
} early;
} // namespace

extern "C" {

FN int fn_unwinds(int n)
{
	blocks_at_end b;

	KEEP();
	return fn_passes(n);
}

FN int fn_outside(int n)
{
	try {
		return fn_unwinds(n);
	} catch (const std::exception &) {
		return 0;
	}
}

FN void fn_noexcept(int n) noexcept
{
	fn_passes(n); // cppcheck-suppress throwInNoexceptFunction
	KEEP();
}

FN void fn_catch_thread()
{
	chain("fn_catches;fn_catch_thread");
	fn_catches(many);
	KEEP();
}

FN void fn_rethrow_thread()
{
	chain("fn_rethrows;fn_rethrow_thread");
	fn_rethrows(many);
	KEEP();
}

FN void fn_unwind_thread()
{
	/* the frame of fn_unwinds is entered again at its landing pad, those it called are gone */
	chain("fn_in_destructor;fn_unwinds;fn_outside;fn_unwind_thread");
	fn_outside(many);
	KEEP();
}

FN void fn_terminate_thread()
{
	/* fn_passes has something to destroy, so it was unwound to before the end was found */
	chain("fn_terminated;fn_passes;fn_noexcept;fn_terminate_thread");
	fn_noexcept(many);
	KEEP();
}

FN void fn_condition_thread()
{
	std::unique_lock<std::mutex> l(lock);

	chain("fn_condition_thread");
	never.wait(l, [] { return many == 0; });
	KEEP();
}

FN void fn_predicate_thread()
{
	std::unique_lock<std::mutex> l(lock, std::defer_lock);
	std::mutex own;
	std::unique_lock<std::mutex> o(own); // cppcheck-suppress localMutex

	chain("fn_predicate;fn_predicate_thread");
	never.wait(o, [] {
		fn_predicate();
		return many == 0;
	});
	KEEP();
}
}

int main()
{
	std::set_terminate(fn_terminated);
	std::thread threads[] = { std::thread(fn_catch_thread), std::thread(fn_rethrow_thread),
		std::thread(fn_unwind_thread), std::thread(fn_terminate_thread),
		std::thread(fn_condition_thread), std::thread(fn_predicate_thread) };

	chain("main");
	for (std::thread &t : threads)
		t.join();
	return 0;
}
