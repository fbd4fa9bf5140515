/** Where counts of jobs stop: beyond it, the exact number is slow to find and of no use. */
export const mostCounted = 10_000
