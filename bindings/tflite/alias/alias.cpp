// SPDX-License-Identifier: Apache-2.0
// A wheel's libedgetpu.so.1: holds nothing itself, and needs libreef_delegate.so. Whoever looks a function up in it
// finds the delegate's, for the loader looks into what a library needs, too.
extern "C" __attribute__((visibility("default"))) const char reef_stands_for_libedgetpu = 1;
