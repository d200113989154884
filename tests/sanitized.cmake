# SPDX-License-Identifier: Apache-2.0
# Some tests under sanitizers, in any build: the sources under test, what they share with others, and the tests are
# compiled once more with a sanitizer; the rest of the library is taken as it is. So every fault at every transfer can be
# tried within minutes. Accesses inside of the rest are not looked at; `make asan` and `make tsan` do that.
#   ninja -C build driver_tests_address driver_tests_thread    the driver, and what it shares with the virtual device
#   ninja -C build data_tests_address data_tests_thread        data pipelines, readers of shards, many devices
function(reef_sanitized_tests name sanitizer sources_like tests_like)
  set(target ${name}_${sanitizer})
  set(sources ${REEF_SOURCES})
  list(FILTER sources INCLUDE REGEX "${sources_like}")
  set(tests ${REEF_UNIT_TESTS})
  list(FILTER tests INCLUDE REGEX "${tests_like}")
  add_executable(${target} EXCLUDE_FROM_ALL ${sources} ${tests})
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  target_include_directories(${target} SYSTEM PRIVATE ${REEF_STB_INCLUDE})
  target_link_libraries(${target} PRIVATE $<TARGET_FILE:reefcore> reef_fmt Threads::Threads ${CMAKE_DL_LIBS} GTest::gtest
                        GTest::gtest_main reef_zlib)
  add_dependencies(${target} reefcore)
  set(kinds ${sanitizer})
  if(sanitizer STREQUAL address)
    set(kinds address,undefined)
  endif()
  target_compile_options(${target} PRIVATE -O1 -g1 -fno-omit-frame-pointer -fno-sanitize-recover=all -fsanitize=${kinds})
  target_link_options(${target} PRIVATE -fsanitize=${kinds})
  target_precompile_headers(${target} PRIVATE <algorithm> <cstdint> <functional> <map> <memory> <optional> <span> <string>
                            <string_view> <variant> <vector> <fmt/format.h>)
endfunction()

foreach(sanitizer address thread)
  reef_sanitized_tests(driver_tests ${sanitizer} "/src/(driver|host)/" "/src/driver/")
  reef_sanitized_tests(data_tests ${sanitizer} "/src/data/|/src/formats/(tar|tfrecord|zip|image)/|/src/base/random_file|/src/runtime/(dealer|replicas|pipeline|placement|virtual_devices)"
                       "/src/data/(flow|shards)_test|/src/formats/(tar|tfrecord)/|/src/runtime/(dealer|replicas|many_devices)_test")
endforeach()
