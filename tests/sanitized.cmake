# SPDX-License-Identifier: Apache-2.0
# The driver's tests under sanitizers, in any build: the driver, what it shares with the virtual device, and the tests are
# compiled once more with a sanitizer; the rest of the library is taken as it is. So every fault at every transfer can be
# tried within minutes. Accesses inside of the virtual chip are not looked at; `make asan` and `make tsan` do that.
#   ninja -C build driver_tests_address driver_tests_thread
foreach(sanitizer address thread)
  set(target driver_tests_${sanitizer})
  set(sources ${REEF_SOURCES})
  list(FILTER sources INCLUDE REGEX "/src/(driver|host)/")
  set(tests ${REEF_UNIT_TESTS})
  list(FILTER tests INCLUDE REGEX "/src/driver/")
  add_executable(${target} EXCLUDE_FROM_ALL ${sources} ${tests})
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
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
endforeach()
