// SPDX-License-Identifier: Apache-2.0
// The delegate of packages: a library of a few kilobytes with the names that programs look for (TFLite's entrance,
// Coral's C and C++ interfaces). The code is in libreef, under private names, so that packages hold the virtual device
// once, and so that libreef can be loaded beside Google's libedgetpu without taking its names.
//
// Each name is one jump, which leaves all registers and the stack as they are: arguments and results need no
// declaration here. bindings/CMakeLists.txt gives the private names.
#if defined(__x86_64__)
#define REEF_JUMP(name) "jmp " name "@PLT\n"
#elif defined(__aarch64__)
#define REEF_JUMP(name) "b " name "\n"
#else
#error "packages are made for x86-64 and arm64"
#endif

#define REEF_FORWARD(name, to) \
  __asm__(".text\n.globl " name "\n.type " name ", %function\n" name ":\n" REEF_JUMP(to) ".size " name ", .-" name "\n")
#define REEF_FORWARD_C(name) REEF_FORWARD(name, "reef_private_" name)
// `rest`: the mangled name behind the namespace, which is edgetpu here and reef_private_edgetpu in libreef.
#define REEF_FORWARD_CPP(rest) REEF_FORWARD("_ZN7edgetpu" rest, "_ZN20reef_private_edgetpu" rest)

REEF_FORWARD_C("tflite_plugin_create_delegate");
REEF_FORWARD_C("tflite_plugin_destroy_delegate");
REEF_FORWARD_C("edgetpu_list_devices");
REEF_FORWARD_C("edgetpu_free_devices");
REEF_FORWARD_C("edgetpu_create_delegate");
REEF_FORWARD_C("edgetpu_free_delegate");
REEF_FORWARD_C("edgetpu_verbosity");
REEF_FORWARD_C("edgetpu_version");

REEF_FORWARD_CPP("14EdgeTpuManager12GetSingletonEv");
REEF_FORWARD_CPP("14EdgeTpuContextD0Ev");
REEF_FORWARD_CPP("14EdgeTpuContextD1Ev");
REEF_FORWARD_CPP("14EdgeTpuContextD2Ev");
REEF_FORWARD_CPP("16RegisterCustomOpEv");
REEF_FORWARD_CPP("lsERSoNS_10DeviceTypeE");  // std::ostream& operator<<(std::ostream&, DeviceType)
