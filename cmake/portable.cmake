# SPDX-License-Identifier: Apache-2.0
# Programs and libraries for every Linux whose C library is REEF_GLIBC or newer, from the compiler of a newer system.
#
# The compiler makes the same objects as ever; only linking differs. zig (PyPI: ziglang) brings stubs of old C libraries and a linker
# for every CPU; the C++ library and the compiler's own come from the compiler, statically (tools/packages/link_portable). So results
# and speed are those of a local build, and the delegate keeps the C++ interface of libstdc++, which programs for Coral are linked
# with. What these objects need and old C libraries lack is in tools/packages/old_glibc.c.
set(REEF_GLIBC "" CACHE STRING "Oldest glibc to run with, such as 2.28; empty: that of this system")
if(NOT REEF_GLIBC)
  return()
endif()
set(REEF_ZIG "${CMAKE_SOURCE_DIR}/build-tools/packages/bin/python;-m;ziglang" CACHE STRING "The command zig")
string(REPLACE ";" " " zig "${REEF_ZIG}")
set(old_glibc ${CMAKE_BINARY_DIR}/old_glibc.o)
enable_language(C)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS tools/packages/old_glibc.c tools/packages/link_portable)
execute_process(COMMAND ${CMAKE_C_COMPILER} -O2 -fPIC -c ${CMAKE_SOURCE_DIR}/tools/packages/old_glibc.c -o ${old_glibc} COMMAND_ERROR_IS_FATAL ANY)
set(link "${CMAKE_SOURCE_DIR}/tools/packages/link_portable --zig '${zig}' --target ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu.${REEF_GLIBC} --compiler ${CMAKE_CXX_COMPILER}")
foreach(language C CXX)
  set(CMAKE_${language}_LINK_EXECUTABLE "${link} <CMAKE_${language}_LINK_FLAGS> <LINK_FLAGS> <OBJECTS> ${old_glibc} -o <TARGET> <LINK_LIBRARIES>")
  set(CMAKE_${language}_CREATE_SHARED_LIBRARY
      "${link} -shared <LINK_FLAGS> -Wl,-soname,<TARGET_SONAME> -o <TARGET> <OBJECTS> ${old_glibc} <LINK_LIBRARIES>")
endforeach()
