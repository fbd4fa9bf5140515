import type { Network } from './network.js'
import { type SessionOptions, withDefaults } from './session.js'
import { openNetworkThread } from './threaded-network.js'

export interface WarmNetworkOptions extends SessionOptions {
  /**
   * While this process uses more memory than this, unused networks are closed, except the most recently used one.
   * Default: 2 GiB.
   */
  maxWarmBytes?: number
}

const defaultMaxWarmBytes = 2 * 1024 ** 3

interface WarmNetwork {
  network: Promise<Network>
  users: number
}

const warm = new Map<string, WarmNetwork>()

/**
 * Calls `use` with the network of this file. It is loaded on the first call and kept for later calls in this process.
 * The least recently used networks are closed first, and never one that is in use.
 */
export async function withWarmNetwork<T>(
  path: string,
  options: WarmNetworkOptions,
  use: (network: Network) => Promise<T>,
): Promise<T> {
  const { maxWarmBytes = defaultMaxWarmBytes } = options
  const settings = withDefaults(options)
  const key = JSON.stringify([path, settings])
  const entry = warm.get(key) ?? { network: openNetworkThread(path, settings), users: 0 }
  // Deleted and set again: a Map keeps insertion order, so its first entries are the least recently used.
  warm.delete(key)
  warm.set(key, entry)
  entry.users++
  try {
    return await use(await entry.network)
  } finally {
    entry.users--
    if (!(await isOpen(entry)) && warm.get(key) === entry) warm.delete(key)
    await closeIdle(maxWarmBytes)
  }
}

/** The same for several networks, in the order of the paths. */
export async function withWarmNetworks<T>(
  paths: readonly string[],
  options: WarmNetworkOptions,
  use: (networks: Network[]) => Promise<T>,
): Promise<T> {
  const [first, ...others] = paths
  if (first === undefined) return use([])
  return withWarmNetwork(first, options, (network) =>
    withWarmNetworks(others, options, (rest) => use([network, ...rest])),
  )
}

/** False for a network that could not be loaded or whose thread ended: the next call reloads it. */
async function isOpen({ network }: WarmNetwork): Promise<boolean> {
  return network.then(
    (loaded) => loaded.isOpen,
    () => false,
  )
}

async function closeIdle(maxWarmBytes: number): Promise<void> {
  const idle = [...warm].filter(([, { users }]) => users === 0)
  for (const [key, { network }] of idle.slice(0, -1)) {
    if (process.memoryUsage.rss() <= maxWarmBytes) return
    warm.delete(key)
    await network.then((loaded) => loaded.close())
  }
}
