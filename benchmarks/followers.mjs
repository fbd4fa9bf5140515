// Event streams of many applications in one process: their memory, the cost of a change in the store, and how soon each
// follower receives the change. The clients run in another process; the service uses a SQLite file. Options:
// --followers=N (default 10,000), --applications=N (100), --changes=N (jobs created, 200).
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createEngine } from '../dist/index.js'
import { createApplication, createHandler, issueKey } from '../dist/http/index.js'
import { listener } from '../dist/http/mounts/node.js'
import { sqliteStores } from '../dist/adapters/stores/sqlite/index.js'

const aimBytes = 200e6

if (process.send) await serve()
else await follow().finally(() => process.exit())

/** The service. Answers each message with its process's usage so far. */
async function serve() {
  const folder = await mkdtemp(join(tmpdir(), 'stemwork-followers-'))
  const stores = sqliteStores({ path: join(folder, 'stemwork.db') })
  const calls = {}
  const jobs = new Proxy(stores.jobs, {
    get(store, name) {
      const value = Reflect.get(store, name)
      if (typeof value !== 'function') return value
      return (...given) => {
        calls[name] = (calls[name] ?? 0) + 1
        return value.apply(store, given)
      }
    },
  })
  const engine = createEngine({ jobs, applications: stores.applications, limits: { maxQueuedJobs: 1e6 } })
  const rateLimits = { create: false, status: false, other: false }
  const server = createServer(
    listener(createHandler(engine, { basePath: '/v1', rateLimits, limits: { allWaitingRequests: 1e5 } })),
  )
  const keys = []
  for (let index = 0; index < Number(process.argv[2]); index++) {
    const id = `application-${index}`
    await createApplication(stores.applications, { id, name: id })
    keys.push((await issueKey(stores.applications, id)).key)
  }
  server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port, keys }))
  process.on('disconnect', () => process.exit())
  process.on('message', (message) => {
    if (message === 'end') return void end()
    globalThis.gc()
    process.send({ ...process.memoryUsage(), cpu: process.cpuUsage(), calls: { ...calls } })
  })

  async function end() {
    server.closeAllConnections()
    await engine.close()
    stores.close()
    await rm(folder, { recursive: true })
    process.exit()
  }
}

async function follow() {
  const { values } = parseArgs({
    options: {
      followers: { type: 'string', default: '10000' },
      applications: { type: 'string', default: '100' },
      changes: { type: 'string', default: '200' },
    },
  })
  const [followers, applications, changes] = [values.followers, values.applications, values.changes].map(Number)
  const child = fork(import.meta.filename, [String(applications)], { execArgv: ['--expose-gc'] })
  const [{ port, keys }] = await once(child, 'message')
  const used = async () => {
    child.send('used')
    return (await once(child, 'message'))[0]
  }
  console.log(
    `${cpus()[0]?.model.trim()}, ${availableParallelism()} processors, load ${loadavg()[0].toFixed(1)}, Node ` +
      `${process.version}; ${followers} event streams of ${applications} applications`,
  )
  const before = await used()
  const streams = []
  for (let index = 0; index < followers; index += 100)
    streams.push(...(await Promise.all(range(100).map((turn) => open(port, keys[(index + turn) % applications])))))
  const open_ = await used()
  const grown = open_.rss - before.rss
  console.log(
    `${mb(grown)} more for ${followers} streams (aim: at most ${mb(aimBytes)}), of which ` +
      `${mb(open_.heapUsed - before.heapUsed)} are heap`,
  )

  // Once per application, the store is polled every two seconds, for changes by other processes.
  await delay(4000)
  const idle = await used()
  const polls = (idle.calls.list - open_.calls.list) / 4
  const waits = []
  const changesFrom = performance.now()
  for (let change = 0; change < changes; change++) {
    const key = keys[change % applications]
    const mine = streams.filter((stream) => stream.key === key)
    const startedAt = performance.now()
    const note = () => waits.push(performance.now() - startedAt)
    const heard = Promise.all(mine.map((stream) => stream.next().then(note)))
    const answer = await fetch(`http://127.0.0.1:${port}/v1/job`, {
      method: 'POST',
      headers: { authorization: key, 'content-type': 'application/json' },
      body: JSON.stringify({
        name: `job ${change}`,
        workflow: 'service/stems-vocals-accompaniment',
        params: { inputUrl: 'https://example.org/song.mp3' },
      }),
    })
    if (!answer.ok) throw new Error(await answer.text())
    await heard
  }
  const after = await used()
  waits.sort((one, other) => one - other)
  const seconds = (performance.now() - changesFrom) / 1000
  const perChange = Object.entries(after.calls)
    .map(([name, count]) => [name, count - (idle.calls[name] ?? 0) - (name === 'list' ? polls * seconds : 0)])
    .map(([name, count]) => [name, count / changes])
    .filter(([, count]) => count >= 0.5)
  const cpuMs = (after.cpu.user + after.cpu.system - idle.cpu.user - idle.cpu.system) / 1000 / changes
  console.log(
    `without changes: ${polls.toFixed(0)} lists a second in total\n` +
      `a change: ${perChange.map(([name, count]) => `${name} ${count.toFixed(2)}`).join(', ')} of the store; ` +
      `${cpuMs.toFixed(1)} ms of the service's processor time; received by all ${followers / applications} after ` +
      `${waits[waits.length >> 1].toFixed(0)} ms (median), ${waits.at(-1).toFixed(0)} ms at most`,
  )
  child.send('end')
  await once(child, 'exit')
}

/** Opens an event stream. */
async function open(port, key) {
  const socket = connect(port, '127.0.0.1')
  let waiting = () => undefined
  socket.write(`GET /v1/job/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: ${key}\r\n\r\n`)
  const [head] = await once(socket, 'data')
  if (!String(head).startsWith('HTTP/1.1 200')) throw new Error(String(head))
  socket.on('data', (data) => String(data).includes('data:') && waiting())
  return { key, next: () => new Promise((resolve) => (waiting = resolve)) }
}

function range(length) {
  return Array.from({ length }, (_, index) => index)
}

function mb(bytes) {
  return `${(bytes / 1e6).toFixed(0)} MB`
}
