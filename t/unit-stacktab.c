/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tap.h"
int main(void){struct tap t={0};return tap_done(&t);}
