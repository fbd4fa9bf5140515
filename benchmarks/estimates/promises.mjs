// An engine's estimates for the jobs of a queue, compared with the actual ends. The engine, its store and its estimates
// are real; workers and time are simulated: an hour of songs takes a second.

/** Shorter times are raised to this one: the page shows them as "a few seconds". */
const leastMs = 10_000

const kilobits = { wav: [1411], flac: [650, 800, 950], mp3: [128, 192, 256, 256, 320, 320], m4a: [128, 256] }
/** Seconds of work per second of audio. */
const speeds = { basic: 0.12, best: 0.5 }
const loadMs = 3_000
const loadedProgress = 0.02

/**
 * @param parts `createEngine`, `memoryJobs`, `memoryBlobs`, `memoryApplications`, `defineWorkflow` and the schema `z`
 * @param options `songs`, `workers` and `seed`
 * @returns the ratios (at least 1) of estimated to actual times, ascending, and the number of missing estimates
 */
export async function promises(parts, options) {
  const real = { date: Date.now, performance: performance.now }
  const clock = { now: 1_790_000_000_000 }
  Date.now = () => clock.now
  performance.now = () => clock.now
  try {
    const start = clock.now
    const first = await simulate(parts, options, clock, new Map())
    clock.now = start + 1_000_000_000
    const ends = new Map([...first.ends].map(([index, end]) => [index, end - start + clock.now]))
    const { said, unsaid } = await simulate(parts, options, clock, ends)
    return { ratios: said.sort((a, b) => a - b), unsaid }
  } finally {
    Date.now = real.date
    performance.now = real.performance
  }
}

/** @param ends when each song will end, from a first pass; empty for that first pass, which makes no estimates */
async function simulate(parts, { songs: count, workers, seed }, clock, ends) {
  const random = randomSource(seed)
  const songs = Array.from({ length: count }, () => songOf(random))
  const bytes = new Map()
  const jobs = parts.memoryJobs({ clock: () => clock.now })
  const blobs = { ...parts.memoryBlobs(), stat: async (key) => ({ bytes: bytes.get(key) }) }
  const workflow = workflowOf(parts)
  const engine = parts.createEngine({
    jobs,
    blobs,
    applications: parts.memoryApplications(),
    workflows: [workflow],
  })
  const owners = Array.from({ length: workers }, (_, index) => ({
    owner: `worker-${index}`,
    speed: 0.8 + 0.4 * random(),
  }))
  for (const { owner } of owners) await register(jobs, owner, workflow.id, clock.now)

  const events = []
  const at = (time, act) => events.push({ time, act })
  let arrival = clock.now
  for (const [index, song] of songs.entries()) {
    // Songs arrive in bursts, with long pauses between them.
    if (random() < 0.4) arrival += (-Math.log(1 - random()) * 600_000) / workers
    at(arrival, () => submit(index, song))
  }
  const found = { ends: new Map(), said: [], unsaid: 0 }
  const ids = new Map()
  const idle = new Set(owners)
  const running = new Map()
  while (events.length > 0) {
    events.sort((a, b) => a.time - b.time)
    const { time, act } = events.shift()
    clock.now = Math.max(clock.now, time)
    await act()
  }
  return found

  async function submit(index, song) {
    const key = `uploads/${song.app}/${index}`
    bytes.set(key, song.bytes)
    const { job } = await engine.submit({
      app: song.app,
      workflow: workflow.id,
      name: `song ${index}.${song.format}`,
      params: { model: song.model },
      uploads: { inputUrl: key },
    })
    ids.set(job.id, { index, song })
    const end = ends.get(index)
    const from = clock.now
    await claim()
    if (end === undefined) return
    for (let tenth = 0; tenth < 10; tenth++) at(from + (tenth * (end - from)) / 10, () => ask(job.id, end))
  }

  async function claim() {
    for (const worker of idle) {
      const job = await jobs.claim({ owner: worker.owner, leaseMs: 1e12, workflows: [workflow.id] })
      if (!job) return
      idle.delete(worker)
      const { song } = ids.get(job.id)
      const workMs = loadMs + (1000 * song.seconds * speeds[song.model] * song.noise) / worker.speed
      running.set(job.id, { job, from: clock.now, workMs })
      at(clock.now + workMs, () => finish(job, worker))
    }
  }

  async function finish(job, worker) {
    const { index, song } = ids.get(job.id)
    const { token, lease } = job
    await jobs.apply(job.id, {
      kind: 'succeed',
      token,
      nonce: lease.nonce,
      outputs: {},
      details: { seconds: song.seconds },
      used: { audioSeconds: song.seconds, bytes: song.bytes, processorSeconds: 0 },
      retentionMs: 1e12,
      messages: [],
    })
    running.delete(job.id)
    found.ends.set(index, clock.now)
    idle.add(worker)
    await claim()
  }

  async function ask(id, end) {
    for (const { job, from, workMs } of running.values()) {
      const work = (clock.now - from - loadMs) / (workMs - loadMs)
      const progress = work < 0 ? 0 : Math.min(0.99, loadedProgress + (1 - loadedProgress) * work)
      const { token, lease } = job
      const beat = { kind: 'heartbeat', token, nonce: lease.nonce, leaseMs: 1e12, stage: 'separate' }
      await jobs.apply(job.id, { ...beat, progress: Math.floor(progress * 100) / 100 })
    }
    const estimate = await engine.estimate(await jobs.get(id))
    if (!estimate) return void found.unsaid++
    const [said, true_] = [estimate.endsAt - clock.now, end - clock.now].map((ms) => Math.max(leastMs, ms))
    found.said.push(Math.max(said / true_, true_ / said))
  }
}

function songOf(random) {
  const pick = (list) => list[Math.floor(random() * list.length)]
  const seconds = 10 * 360 ** random()
  const format = pick(['wav', 'flac', 'mp3', 'mp3', 'm4a'])
  return {
    app: pick(['ann', 'ann', 'bob', 'cem']),
    seconds,
    format,
    bytes: Math.round((seconds * pick(kilobits[format]) * 1000) / 8),
    model: random() < 0.8 ? 'basic' : 'best',
    // Songs of the same length take different times.
    noise: 0.85 + 0.3 * random(),
  }
}

function workflowOf({ defineWorkflow, z }) {
  return defineWorkflow({
    id: 'service/simulated',
    name: 'Simulated',
    description: 'Is never run.',
    params: z.object({ inputUrl: z.string().optional(), model: z.enum(['basic', 'best']) }),
    inputs: ['inputUrl'],
    outputs: {},
    stages: [{ name: 'separate', async run() {} }],
  })
}

async function register(jobs, owner, workflow, now) {
  const value = {
    owner,
    workflows: [workflow],
    labels: [],
    state: 'open',
    warm: [],
    slots: 1,
    running: 0,
    startedAt: now,
    seenAt: now,
    durations: {},
  }
  await jobs.documents.put({ kind: 'worker', key: owner, value, ttlMs: 1e12 }, { version: 0 })
}

/** mulberry32: the same numbers for the same seed. */
function randomSource(seed) {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

export function share(ratios, part) {
  return ratios[Math.min(ratios.length - 1, Math.floor(ratios.length * part))]
}
