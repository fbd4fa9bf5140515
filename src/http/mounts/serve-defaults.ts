/** Defaults of `serve`, for its bounds and for the page that lists them. */
export const serveDefaults = {
  maxConnections: 1000,
  maxConnectionsPerAddress: 750,
  headersTimeoutMs: 60_000,
  idleTimeoutMs: 120_000,
}
