# SPDX-License-Identifier: Apache-2.0
# The libraries that Reef is built with: fmt::fmt, nlohmann_json::nlohmann_json, CLI11::CLI11, ZLIB::ZLIB, FlatBuffers' headers and
# flatc, stb's headers. The system's are taken where it has them. Where it lacks some, the build says which, all at once, or downloads
# their sources (REEF_FETCH): fixed versions with fixed checksums, from Debian's archive or, once that has moved on, its snapshots.
#
# REEF_STATIC: link fmt and zlib statically, so that a program runs where they are not installed.
# Sets FLATC (a program or a target) and REEF_DEPENDENCIES: "name version licence origin" of each, for the bill of materials.
include(FetchContent)
if(POLICY CMP0135)  # unpacked files are as new as the download
  cmake_policy(SET CMP0135 NEW)
endif()

set(fetch_by_default OFF)
if(SKBUILD)  # `pip install`: whoever runs it expects that build requirements come by themselves
  set(fetch_by_default ON)
endif()
option(REEF_FETCH "Download the sources of libraries that the system lacks" ${fetch_by_default})
option(REEF_STATIC "Link libraries other than the C library statically" ${fetch_by_default})

set(archive http://deb.debian.org/debian/pool/main)
set(snapshot http://snapshot.debian.org/archive/debian/20250520T000000Z/pool/main)
set(fmt_source f/fmtlib/fmtlib_9.1.0+ds1.orig.tar.gz 84ce1c2d0be3a9863935137969dcec6970125caac032f82474640bfc81463583)
set(json_source n/nlohmann-json3/nlohmann-json3_3.11.2.orig.tar.gz d69f9deb6a75e2580465c6c4c5111b89c4dc2fa94e3a85fcd2ffcd9a143d9273)
set(cli11_source c/cli11/cli11_2.1.2+ds.orig.tar.xz 8143d20b688e98ccce8e24562d3b68e5f47c12e896c42c7ca8553dbde5bed55d)
set(zlib_source z/zlib/zlib_1.2.13.dfsg.orig.tar.bz2 71feb7947e3c00ef125f83b79a4e529bde31171e5babe48b391f06758d1ab0a1)
set(flatbuffers_source f/flatbuffers/flatbuffers_2.0.8+dfsg1.orig.tar.xz 424b8c76568e718a1a05c3fbc6b2070c83b5e55d9b48568fa4f744e9bcd1163a)
set(stb_source libs/libstb/libstb_0.0~git20220908.8b5f1f3+ds.orig.tar.xz 6949c8ff9f86d982cff1b384f1301a731cbaf3b3fa4d1728c7b48a02386d31d8)

set(REEF_MISSING "")       # Debian's names of packages that are not there
set(REEF_DEPENDENCIES "")

macro(reef_depends_on name version licence origin)
  list(APPEND REEF_DEPENDENCIES "${name} ${version} ${licence} ${origin}")
endmacro()

# Sources of `name` in `name`_SOURCE_DIR, unpacked but not configured.
macro(reef_fetch name)
  list(GET ${name}_source 0 path)
  list(GET ${name}_source 1 checksum)
  message(STATUS "Downloading the source of ${name}, which this system lacks")
  FetchContent_Declare(reef_${name} URL ${archive}/${path} ${snapshot}/${path} URL_HASH SHA256=${checksum}
                       SOURCE_SUBDIR none)  # a folder that does not exist: nothing is configured
  FetchContent_MakeAvailable(reef_${name})
  set(${name}_SOURCE_DIR ${reef_${name}_SOURCE_DIR})
endmacro()

# A library of headers alone, in the system's folders.
macro(reef_header_library target folder)
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${folder})
endmacro()

# ---- {fmt} ----
# Debian has no static library of it: that is compiled from the source. The system's headers of the same version are kept for it, so
# that objects are the same as in other builds.
set(fmt_fixed_version 9.1.0)
find_package(fmt QUIET)
if(fmt_FOUND AND NOT REEF_STATIC)
  add_library(reef_fmt ALIAS fmt::fmt)
  reef_depends_on(fmt ${fmt_VERSION} MIT system)
elseif(REEF_FETCH)
  reef_fetch(fmt)
  add_library(reef_fmt STATIC ${fmt_SOURCE_DIR}/src/format.cc ${fmt_SOURCE_DIR}/src/os.cc)
  if(fmt_VERSION STREQUAL fmt_fixed_version)
    target_compile_definitions(reef_fmt PUBLIC FMT_SHARED)  # as the system's library: it changes declarations
  else()
    target_include_directories(reef_fmt SYSTEM BEFORE PUBLIC ${fmt_SOURCE_DIR}/include)
  endif()
  reef_depends_on(fmt ${fmt_fixed_version} MIT ${fmt_SOURCE_DIR})
else()
  list(APPEND REEF_MISSING libfmt-dev)
endif()

# ---- nlohmann/json ----
find_package(nlohmann_json QUIET)
if(nlohmann_json_FOUND)
  reef_depends_on(nlohmann-json ${nlohmann_json_VERSION} MIT system)
elseif(REEF_FETCH)
  reef_fetch(json)
  reef_header_library(nlohmann_json::nlohmann_json ${json_SOURCE_DIR}/single_include)
  reef_depends_on(nlohmann-json 3.11.2 MIT ${json_SOURCE_DIR})
else()
  list(APPEND REEF_MISSING nlohmann-json3-dev)
endif()

# ---- CLI11 ----
find_package(CLI11 QUIET)
if(CLI11_FOUND)
  reef_depends_on(CLI11 ${CLI11_VERSION} BSD-3-Clause system)
elseif(REEF_FETCH)
  reef_fetch(cli11)
  reef_header_library(CLI11::CLI11 ${cli11_SOURCE_DIR}/include)
  reef_depends_on(CLI11 2.1.2 BSD-3-Clause ${cli11_SOURCE_DIR})
else()
  list(APPEND REEF_MISSING libcli11-dev)
endif()

# ---- zlib ----
find_package(ZLIB QUIET)
find_library(REEF_ZLIB_ARCHIVE libz.a)
if(ZLIB_FOUND AND REEF_STATIC AND REEF_ZLIB_ARCHIVE)
  add_library(reef_zlib STATIC IMPORTED GLOBAL)
  set_target_properties(reef_zlib PROPERTIES IMPORTED_LOCATION ${REEF_ZLIB_ARCHIVE} INTERFACE_INCLUDE_DIRECTORIES "${ZLIB_INCLUDE_DIRS}")
  reef_depends_on(zlib ${ZLIB_VERSION_STRING} Zlib system)
elseif(ZLIB_FOUND AND NOT REEF_STATIC)
  add_library(reef_zlib ALIAS ZLIB::ZLIB)
  reef_depends_on(zlib ${ZLIB_VERSION_STRING} Zlib system)
elseif(REEF_FETCH)
  enable_language(C)
  reef_fetch(zlib)
  file(GLOB zlib_files ${zlib_SOURCE_DIR}/*.c)
  add_library(reef_zlib STATIC ${zlib_files})
  target_include_directories(reef_zlib SYSTEM PUBLIC ${zlib_SOURCE_DIR})
  target_compile_definitions(reef_zlib PRIVATE Z_HAVE_UNISTD_H)
  target_compile_options(reef_zlib PRIVATE -w)
  reef_depends_on(zlib 1.2.13 Zlib ${zlib_SOURCE_DIR})
else()
  list(APPEND REEF_MISSING zlib1g-dev)
endif()

# ---- FlatBuffers: headers, and flatc of the same version, which runs on the machine that builds ----
find_program(FLATC flatc)
find_path(REEF_FLATBUFFERS_INCLUDE flatbuffers/flatbuffers.h)
if(FLATC AND REEF_FLATBUFFERS_INCLUDE)
  execute_process(COMMAND ${FLATC} --version OUTPUT_VARIABLE flatc_version)
  string(REGEX MATCH "[0-9][0-9.]+" flatc_version "${flatc_version}")
  reef_depends_on(flatbuffers ${flatc_version} Apache-2.0 system)
elseif(REEF_FETCH AND NOT CMAKE_CROSSCOMPILING)
  reef_fetch(flatbuffers)
  set(FLATBUFFERS_BUILD_TESTS OFF CACHE BOOL "" FORCE)
  set(FLATBUFFERS_BUILD_FLATLIB OFF CACHE BOOL "" FORCE)
  set(FLATBUFFERS_BUILD_FLATHASH OFF CACHE BOOL "" FORCE)
  set(FLATBUFFERS_INSTALL OFF CACHE BOOL "" FORCE)
  add_subdirectory(${flatbuffers_SOURCE_DIR} ${CMAKE_BINARY_DIR}/flatbuffers EXCLUDE_FROM_ALL)
  target_compile_options(flatc PRIVATE -O0 -w)  # it runs twice
  set(FLATC $<TARGET_FILE:flatc>)
  set(REEF_FLATBUFFERS_INCLUDE ${flatbuffers_SOURCE_DIR}/include)
  reef_depends_on(flatbuffers 2.0.8 Apache-2.0 ${flatbuffers_SOURCE_DIR})
else()
  list(APPEND REEF_MISSING flatbuffers-compiler libflatbuffers-dev)
endif()

# ---- stb ----
find_path(REEF_STB_INCLUDE stb_image.h PATH_SUFFIXES stb)
if(REEF_STB_INCLUDE)
  reef_depends_on(stb 2022-09-08 MIT system)
elseif(REEF_FETCH)
  reef_fetch(stb)
  set(REEF_STB_INCLUDE ${stb_SOURCE_DIR})
  reef_depends_on(stb 2022-09-08 MIT ${stb_SOURCE_DIR})
else()
  list(APPEND REEF_MISSING libstb-dev)
endif()

if(REEF_MISSING)
  string(REPLACE ";" " " missing "${REEF_MISSING}")
  message(FATAL_ERROR "Libraries are missing. On Debian and its derivatives install them by\n  sudo apt install ${missing}\n"
                      "elsewhere install what corresponds to them, or let the build download their sources: -DREEF_FETCH=ON")
endif()
list(JOIN REEF_DEPENDENCIES "\n" lines)
file(WRITE ${CMAKE_BINARY_DIR}/dependencies.txt "${lines}\n")
