/**
 * The most memory, in bytes, that this process may hold while a stage runs; 0 for no limit. A stage sets it while an
 * input may be crafted to fill the memory, and resets it. A child process that exceeds it is ended, and the job is not
 * retried; the host's own process is not watched. It covers all memory, not only the heap that V8 limits.
 */
export const memoryLimit = new Float64Array(new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT))
