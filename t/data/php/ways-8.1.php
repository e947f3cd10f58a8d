<?php
/* SPDX-License-Identifier: GPL-2.0-or-later
 * Ways to block that PHP has since 8.1. */
namespace Ways\Of;

return [
	'callable' => fn() => (new Derived)->run(...)(),
	'fiber' => function () { (new \Fiber(function () { Base::pause(); }))->start(); },
];
