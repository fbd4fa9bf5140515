/** Where counts of jobs end: the exact number of more is of use to nobody, and takes as long to find. */
export const mostCounted = 10_000
