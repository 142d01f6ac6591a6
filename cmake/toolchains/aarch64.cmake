# 64-bit ARM with Debian's cross compilers; what is built runs under qemu-user. scripts/fetch-aarch64 puts the libraries
# that Debian has no cross packages of into build/aarch64-root.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

get_filename_component(extra_root ${CMAKE_CURRENT_LIST_DIR}/../../build/aarch64-root ABSOLUTE)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu ${extra_root}/usr)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES ${extra_root}/usr/include)
set(CMAKE_C_STANDARD_INCLUDE_DIRECTORIES ${extra_root}/usr/include)
set(extra_libraries ${extra_root}/usr/lib/aarch64-linux-gnu)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-L${extra_libraries} -Wl,-rpath-link,${extra_libraries}")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-L${extra_libraries}")
set(CMAKE_MODULE_LINKER_FLAGS_INIT "-L${extra_libraries}")

set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64;-L;/usr/aarch64-linux-gnu;-E;LD_LIBRARY_PATH=${extra_libraries})
