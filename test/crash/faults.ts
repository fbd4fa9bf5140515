import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import type { CrashDeployment, Node, ServerName } from './deployment.js'
import { pick, shuffled } from './random.js'

export type FaultName =
  | 'worker killed'
  | 'worker stopped'
  | 'API node killed'
  | 'API node stopped'
  | 'connections cut'
  | 'connections silenced'
  | 'connections delayed'
  | 'Redis flushed'
  | 'Postgres restarted'
  | 'S3 away'

/** A fault: the process whose work it may have ended, and its time span. Without a pid: any process. */
export interface Hit {
  pid: number | undefined
  from: number
  until: number
}

/** Silenced connections stay silent: after this time, each has been given up. */
const silentMs = 60_000

const serverNames: readonly ServerName[] = ['postgres', 'redis', 's3']

export interface FaultPlan {
  random: () => number
  /** Number of faults of each kind. */
  counts: Partial<Record<FaultName, number>>
  seconds: number
  /** Duration of the S3 outage. */
  outageSeconds: number
  leaseSeconds: number
}

/**
 * Applies all faults of the plan to the deployment at equal intervals; the random numbers decide their order and
 * targets.
 */
export async function bringFaults(
  deployment: CrashDeployment,
  { random, counts, seconds, outageSeconds, leaseSeconds }: FaultPlan,
  log: (line: string) => void,
): Promise<{ hits: Hit[]; done: Partial<Record<FaultName, number>> }> {
  const hits: Hit[] = []
  const done: Partial<Record<FaultName, number>> = {}
  const names = Object.entries(counts).flatMap(([name, count]) => Array<FaultName>(count).fill(name as FaultName))
  const busy = new Set<Node>()
  const under: Promise<void>[] = []

  const acts: Record<FaultName, () => Promise<void>> = {
    'worker killed': () => onNode('worker', (node) => kill(node)),
    'API node killed': () => onNode('api', (node) => kill(node)),
    'worker stopped': () => onNode('worker', (node) => stop(node, leaseSeconds * 1000 * (1.2 + random()))),
    'API node stopped': () => onNode('api', (node) => stop(node, 1000 + 2000 * random())),
    'connections cut': () =>
      onNode(undefined, async ({ proxies }, server) => {
        proxies[server]?.cut()
      }),
    'connections silenced': () =>
      onNode(undefined, async ({ proxies, process }, server) => {
        hits.push({ pid: process.pid, from: Date.now(), until: Date.now() + silentMs })
        void proxies[server]?.silence()
        await delay(3000 + 5000 * random())
        proxies[server]?.speak()
      }),
    'connections delayed': () =>
      onNode(undefined, async ({ proxies }, server) => {
        proxies[server]?.setDelay(100 + 400 * random())
        await delay(4000)
        proxies[server]?.setDelay(0)
      }),
    'Redis flushed': async () => {
      if (!deployment.redis) return
      const redis = new Redis(deployment.redis.url)
      await redis.flushall()
      await redis.quit()
    },
    'Postgres restarted': async () => {
      const from = Date.now()
      await deployment.postgres.restart()
      hits.push({ pid: undefined, from, until: Date.now() })
    },
    'S3 away': async () => {
      // No hit: an outage of the blob store costs no attempt.
      for (const proxy of deployment.proxiesOf('s3')) proxy.setAway(true)
      await delay(outageSeconds * 1000)
      for (const proxy of deployment.proxiesOf('s3')) proxy.setAway(false)
    },
  }

  // The long outage comes first, so that the other faults fall into it.
  const order = shuffled(random, names).sort((a, b) => Number(b === 'S3 away') - Number(a === 'S3 away'))
  for (const name of order) {
    await delay((seconds * 1000) / order.length)
    done[name] = (done[name] ?? 0) + 1
    under.push(acts[name]())
  }
  await Promise.all(under)
  return { hits, done }

  async function onNode(kind: Node['kind'] | undefined, act: (node: Node, server: ServerName) => Promise<void>) {
    const free = deployment.nodes.filter((node) => !busy.has(node) && (kind === undefined || node.kind === kind))
    if (free.length === 0) return
    const node = pick(random, free)
    const server = pick(
      random,
      serverNames.filter((name) => node.proxies[name] !== undefined),
    )
    log(`${order[under.length]}: ${node.name}${kind === undefined ? `, ${server}` : ''}`)
    busy.add(node)
    const { pid } = node.process
    const from = Date.now()
    await act(node, server)
    hits.push({ pid, from, until: Date.now() })
    busy.delete(node)
  }

  async function kill(node: Node): Promise<void> {
    await node.process.kill()
    await node.process.start()
  }

  async function stop(node: Node, ms: number): Promise<void> {
    node.process.pause()
    await delay(ms)
    node.process.resume()
  }
}
