/**
 * The most memory, in bytes, that this process may hold while a stage runs; 0 for no limit. A stage sets it where an input may be made
 * to fill the memory, and takes it back. A child process that exceeds it is ended, and the job is not tried again; a host's own process
 * is not watched. It counts all memory, not only the heap that V8 limits.
 */
export const memoryLimit = new Float64Array(new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT))
