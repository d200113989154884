# Compiles several small files of a folder as one, which takes 0.55 of the CPU time from nothing: headers' templates are
# instantiated once for all of them. After a change more is compiled, so it is off where ccache keeps single files' objects,
# and in the way of somebody who changes one file all day (-DREEF_TOGETHER=OFF).
#
# Files of one namespace may then not use the same name in their unnamed namespaces; the compiler says where they do.
set(together ON)
cmake_host_system_information(RESULT memory QUERY TOTAL_PHYSICAL_MEMORY)  # MiB
if(CMAKE_CXX_COMPILER_LAUNCHER OR memory LESS 3500)  # sixteen files take up to 1.3 GB, one kernel alone 1.1, most files below 0.5
  set(together OFF)
endif()
option(REEF_TOGETHER "Compile the files of a folder several at a time" ${together})

# At most this many files at once, for the sake of memory (see above).
set(REEF_TOGETHER_MOST 16)

# reef_together(target [EXCLUDE regex]): files of `target` are compiled with their neighbours, except those that match
# `regex` or have compile definitions of their own.
function(reef_together target)
  if(NOT REEF_TOGETHER)
    return()
  endif()
  cmake_parse_arguments(given "" "EXCLUDE" "" ${ARGN})
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    get_filename_component(source ${source} ABSOLUTE)
    get_source_file_property(own ${source} COMPILE_DEFINITIONS)
    if(NOT source MATCHES "\\.cpp$" OR own OR (given_EXCLUDE AND source MATCHES "${given_EXCLUDE}"))
      continue()
    endif()
    get_filename_component(folder ${source} DIRECTORY)
    file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR} ${folder})
    string(MAKE_C_IDENTIFIER ${folder} folder)
    if(NOT DEFINED count_${folder})
      set(count_${folder} 0)
    endif()
    math(EXPR batch "${count_${folder}} / ${REEF_TOGETHER_MOST}")
    math(EXPR count_${folder} "${count_${folder}} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${batch})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # A class that one .cpp file defines may have a field of a type of its unnamed namespace. To gcc, joined files look like headers,
  # where that would be a mistake.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()
