/**
 * The most memory, in bytes, that this process may hold while a stage runs; 0: no limit. A stage sets the limit while
 * an input may be crafted to fill the memory, and resets it. A child process that exceeds it is killed, and the job is
 * not retried; the host's process is not watched. The limit covers all memory, not only the heap that V8 limits.
 */
export const memoryLimit = new Float64Array(new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT))
