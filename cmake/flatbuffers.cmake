# SPDX-License-Identifier: Apache-2.0
# reef_generate_schema(PREFIX path/to/x.fbs): C++ accessors (x_generated.h) and the schema itself as an embedded binary
# (x_bfbs_generated.h, for reflection), under <build>/generated/<path of the .fbs below src>. Sets PREFIX_HEADERS.
function(reef_generate_schema PREFIX FBS)
  get_filename_component(name ${FBS} NAME_WE)
  get_filename_component(folder ${FBS} DIRECTORY)
  file(RELATIVE_PATH below_src ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/${folder})
  set(out ${CMAKE_BINARY_DIR}/generated/${below_src})
  set(headers ${out}/${name}_generated.h ${out}/${name}_bfbs_generated.h)
  add_custom_command(
    OUTPUT ${headers}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${out}
    COMMAND ${FLATC} --cpp --scoped-enums --bfbs-gen-embed -o ${out} ${CMAKE_SOURCE_DIR}/${FBS}
    DEPENDS ${CMAKE_SOURCE_DIR}/${FBS}
    VERBATIM)
  set(${PREFIX}_HEADERS ${headers} PARENT_SCOPE)
endfunction()
