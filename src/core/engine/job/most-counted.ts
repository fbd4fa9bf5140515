/** Where counts of jobs stop: the exact number beyond it is of no use and is slow to find. */
export const mostCounted = 10_000
