# Programs that are linked with the layers below api/, in every preset.
find_package(Threads REQUIRED)
set(inside_directory ${CMAKE_CURRENT_LIST_DIR})

# inside_program(target source...): the allocator's inside, called directly
function(inside_program target)
    add_executable(${target} ${ARGN} $<TARGET_OBJECTS:huddle_core>)
    target_include_directories(${target} PRIVATE ${inside_directory})
    target_link_libraries(${target} PRIVATE huddle_flags huddle_sanitizer Threads::Threads)
endfunction()

# outside_program(target source...): linked against nothing of huddle, to be preloaded
function(outside_program target)
    add_executable(${target} ${ARGN})
    target_include_directories(${target} PRIVATE ${inside_directory} ${PROJECT_SOURCE_DIR}/include)
    target_compile_definitions(${target} PRIVATE _GNU_SOURCE TEST_FROM_OUTSIDE=1)
    target_compile_options(${target} PRIVATE -fno-builtin ${c_warnings})
    target_link_libraries(${target} PRIVATE Threads::Threads)
endfunction()
