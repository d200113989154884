# SPDX-License-Identifier: Apache-2.0
# Tests of the libraries, the delegate, the Python package, the examples and the installation.
# Reef's libraries as other programs use them: nothing of Reef is linked in but what they export.
set(REEF_BINDINGS ${CMAKE_SOURCE_DIR}/bindings)
add_executable(api_tests ${REEF_BINDINGS}/c/c_api_test.cpp)
target_compile_definitions(api_tests PRIVATE REEF_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
target_link_libraries(api_tests PRIVATE libreef GTest::gtest GTest::gtest_main)
gtest_discover_tests(api_tests DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 900)

# A program that lets allocations of the library fail. Sanitizers have an operator new of their own.
if(NOT REEF_SANITIZE)
  add_executable(allocation_tests ${CMAKE_CURRENT_SOURCE_DIR}/allocation_failures.cpp)
  target_compile_definitions(allocation_tests PRIVATE REEF_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_link_libraries(allocation_tests PRIVATE libreef GTest::gtest GTest::gtest_main)
  gtest_discover_tests(allocation_tests DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 900)
endif()

# Memory, descriptors and time over many inferences. The tests are short; docs/trust.md has long runs.
add_executable(endurance ${CMAKE_CURRENT_SOURCE_DIR}/endurance.cpp)
target_link_libraries(endurance PRIVATE libreef)
if(NOT REEF_SANITIZE)  # a sanitizer's allocator keeps what is freed
  set(creatures ${CMAKE_SOURCE_DIR}/models/reef_creatures_int8.tflite)
  add_test(NAME endurance_compile COMMAND reef compile ${creatures} -o ${CMAKE_CURRENT_BINARY_DIR})
  add_test(NAME endurance_cpu COMMAND endurance ${creatures} --runs 3000 --opens 300 --device cpu)
  add_test(NAME endurance_device COMMAND endurance ${CMAKE_CURRENT_BINARY_DIR}/reef_creatures_int8_edgetpu.tflite
           --runs 200 --opens 100 --device virtual)
  set_tests_properties(endurance_compile PROPERTIES FIXTURES_SETUP endurance_model)
  set_tests_properties(endurance_device PROPERTIES FIXTURES_REQUIRED endurance_model TIMEOUT 600)
endif()

add_executable(delegate_tests ${REEF_BINDINGS}/tflite/delegate_test.cpp)
target_compile_definitions(delegate_tests PRIVATE REEF_DELEGATE="$<TARGET_FILE:reef_delegate>")
target_include_directories(delegate_tests PRIVATE ${REEF_BINDINGS}/tflite)
target_link_libraries(delegate_tests PRIVATE reefcore GTest::gtest GTest::gtest_main ${CMAKE_DL_LIBS})
add_dependencies(delegate_tests reef_delegate)
gtest_discover_tests(delegate_tests DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 900)

# Real TFLite runtimes with the delegate. They come from PyPI and npm, into the build folder; where that cannot be reached
# the test skips itself.
add_test(NAME tflite_clients COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/clients/run_clients.py ${CMAKE_BINARY_DIR})
set_tests_properties(tflite_clients PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 3000)

# Programs written for Coral, as they are.
add_test(NAME coral_programs COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/clients/run_coral_programs.py ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR})
set_tests_properties(coral_programs PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 900)

# Ultralytics' exporter, where it is installed.
add_test(NAME ultralytics COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/clients/run_ultralytics.py ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR})
set_tests_properties(ultralytics PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 6000)

# Keras and TensorFlow's converter, where they are installed.
add_test(NAME keras COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/clients/run_keras.py ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR})
set_tests_properties(keras PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 3000)

# Netron's reader, from PyPI, under Node.js.
add_test(NAME netron COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/clients/run_netron.py ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR})
set_tests_properties(netron PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 900)

# pyusb with virtual sticks, where it is installed (PyPI: pyusb).
add_test(NAME pyusb COMMAND reef virtual-usb -- ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/clients/pyusb_client.py)
set_tests_properties(pyusb PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 120)

# Programs that name a real device, run unchanged with virtual sticks and a virtual card plugged in.
enable_language(C)
add_executable(stick_client clients/stick_client.c)
target_link_libraries(stick_client PRIVATE libreef)
add_test(NAME stick_clients COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/clients/run_on_stick.py ${CMAKE_BINARY_DIR})
set_tests_properties(stick_clients PROPERTIES TIMEOUT 900)

add_subdirectory(${CMAKE_SOURCE_DIR}/examples/cpp ${CMAKE_BINARY_DIR}/examples/cpp)

# The Python package needs NumPy: of the Python that was found, or of Debian's.
foreach(candidate ${Python3_EXECUTABLE} /usr/bin/python3)
  execute_process(COMMAND ${candidate} -c "import numpy" RESULT_VARIABLE missing OUTPUT_QUIET ERROR_QUIET)
  if(NOT missing AND NOT REEF_PYTHON_WITH_NUMPY)
    set(REEF_PYTHON_WITH_NUMPY ${candidate})
  endif()
endforeach()
if(NOT REEF_PYTHON_WITH_NUMPY)
  message(STATUS "No Python with NumPy: tests of the Python package are left out (Debian: python3-numpy)")
elseif(NOT REEF_SANITIZE)
  add_test(NAME python_package COMMAND ${REEF_PYTHON_WITH_NUMPY} -m unittest discover -s ${REEF_BINDINGS}/python/tests)
  add_test(NAME python_examples COMMAND ${REEF_PYTHON_WITH_NUMPY} -m unittest discover -s ${CMAKE_SOURCE_DIR}/examples/python -p test_*.py)
  set_tests_properties(python_package python_examples PROPERTIES TIMEOUT 900 ENVIRONMENT
    "PYTHONPATH=${REEF_BINDINGS}/python;REEF_LIBRARY=$<TARGET_FILE:libreef>;REEF_EXAMPLES=${CMAKE_BINARY_DIR}/examples;REEF_PROGRAM=$<TARGET_FILE:reef>;PYTHONDONTWRITEBYTECODE=1")
endif()

# Versions, dependencies, pages and scripts of packages agree; libreef's binary interface is the recorded one.
add_test(NAME packages COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/packages/check_metadata.py ${CMAKE_SOURCE_DIR})
add_test(NAME abi COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/check_abi.py $<TARGET_FILE:libreef> ${CMAKE_SOURCE_DIR})

# Installed somewhere, found by CMake and pkg-config, built against and run.
add_test(NAME install COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/install/run.sh ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR})
set_tests_properties(install PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 900)

add_executable(invoke_bench EXCLUDE_FROM_ALL invoke_bench.cpp)
target_link_libraries(invoke_bench PRIVATE reefcore libreef)
