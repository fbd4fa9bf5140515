// A long song whose worker is repeatedly killed with -9, against an undisturbed run: the work done in all, and whether
// the files are identical. Work is the CPU time of worker and child process, and the time that the job ran. A kill
// comes after a given CPU time of an attempt, so a busy machine changes little. A song of one second shows the cost of
// starting a worker and its child process and of loading the network; without the starts that kills added, the ratio is
// that of the work itself. Store: SQLite; files: a folder. Needs /proc (Linux). Exits with 1 if the files differ, the
// work without starts is over 1.10 times, or nothing was killed.
//
// The CPU time of a run varies by a tenth on a busy machine, so both kinds of run take turns, and medians are compared.
//
// Options: --minutes=30 (of audio)  --every=20 (CPU seconds between kills)  --format=16  --rounds=3
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { createEngine, localFile, stemsWorkflow } from '../build/index.js'
import { fsBlobs } from '../build/adapters/blobs/fs/index.js'
import { sqliteStores } from '../build/adapters/stores/sqlite/index.js'
import { openWavWriter } from '../build/core/media/encode/wav-writer.js'
import { middle, option } from './shared/benchmark.mjs'

const sampleRate = 44_100
const limit = 1.1
/** Number of runs of the one-second song, of which the median counts. */
const starts = 3
const ticksPerSecond = 100

if (process.argv[2] === 'worker') await work(...process.argv.slice(3))
else await main()

async function main() {
  const minutes = Number(option('minutes', '30'))
  const everySeconds = Number(option('every', '20'))
  const format = option('format', '16')
  const rounds = Number(option('rounds', '3'))
  const folder = await mkdtemp(join(tmpdir(), 'stemwork-resume-'))
  try {
    console.log(
      `${cpus()[0]?.model.trim()}, ${availableParallelism()} processors, load ${loadavg()[0].toFixed(1)}, Node ` +
        `${process.version}; ${minutes} minutes of audio, format ${format}\n`,
    )
    const song = join(folder, 'song.wav')
    await writeSong(song, minutes * 60)
    console.log(row(['run', 'kills', 'processor s', 'running s', 'ratio', 'same bytes']))
    const brief = join(folder, 'brief.wav')
    await writeSong(brief, 1)
    const started = []
    for (let n = 0; n < starts; n++) started.push(await runJob(join(folder, `start-${n}`), brief, format, Infinity))
    const start = middle(started.map(({ processorSeconds }) => processorSeconds))
    print('a song of 1 s', started[0], started[0])
    const wholes = []
    const withoutStarts = []
    let kills = 0
    let isSame = true
    for (let round = 0; round < rounds; round++) {
      const whole = await runJob(join(folder, `whole-${round}`), song, format, Infinity)
      print('undisturbed', whole, whole)
      const killed = await runJob(join(folder, `killed-${round}`), song, format, everySeconds)
      print(`killed every ${everySeconds} s`, killed, whole)
      wholes.push(whole.processorSeconds)
      withoutStarts.push(killed.processorSeconds - killed.kills * start)
      kills += killed.kills
      isSame &&= killed.hash === whole.hash
    }
    const without = middle(withoutStarts) / middle(wholes)
    console.log(`\nwithout the starts that kills added: ${without.toFixed(3)} times the processor time`)
    if (kills === 0) console.log('nothing was killed: the song is too short')
    if (kills === 0 || !isSame || without > limit) process.exitCode = 1
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function runJob(folder, song, format, everySeconds) {
  const total = { processorSeconds: 0, runningSeconds: 0, kills: 0, hash: '' }
  for (;;) {
    const worker = spawn(process.execPath, [import.meta.filename, 'worker', folder, song, format], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    let startedAt
    let timer
    const hash = await new Promise((resolve, reject) => {
      worker.on('error', reject)
      worker.on('exit', () => reject(new Error('the worker exited by itself')))
      createInterface({ input: worker.stdout }).on('line', (line) => {
        const [word, value] = line.split(' ')
        if (word === 'started') {
          startedAt = performance.now()
          const before = processorSeconds(worker.pid)
          const look = async () => {
            if ((await processorSeconds(worker.pid)) - (await before) >= everySeconds) resolve('')
          }
          timer = setInterval(() => void look(), 250)
        } else if (word === 'ended') {
          resolve(value)
        }
      })
    })
    clearInterval(timer)
    total.runningSeconds += (performance.now() - startedAt) / 1000
    total.processorSeconds += await processorSeconds(worker.pid)
    worker.removeAllListeners('exit')
    const gone = new Promise((resolve) => worker.once('exit', resolve))
    worker.kill('SIGKILL')
    await gone
    if (hash !== '') return { ...total, hash }
    total.kills++
  }
}

/**
 * A worker that resumes the job, or submits it if there is none. It prints when an attempt begins and, with a hash of
 * the files, when the job has ended.
 */
async function work(folder, song, format) {
  const { jobs, applications } = sqliteStores({ path: join(folder, 'jobs.db'), openTimeoutMs: 5000 })
  const engine = createEngine({
    jobs,
    applications,
    blobs: fsBlobs({ directory: join(folder, 'blobs') }),
    workflows: [stemsWorkflow({ format })],
    scratchDirectory: join(folder, 'scratch'),
    limits: { maxAudioSeconds: 1e6, maxFileBytes: 1e11 },
    dispatch: { leaseMs: 5000, sweepIntervalMs: 500, niceness: 0 },
  })
  const [known] = await engine.list({ app: 'bench', limit: 1 })
  engine.on('job.started', () => console.log('started'))
  engine.on('job.succeeded', async ({ job }) => console.log(`ended ${await hashOf(engine, job)}`))
  engine.on('job.failed', ({ job }) => {
    console.error(`The job failed: ${job.error.message} ${job.failure}`)
    process.exit(1)
  })
  await engine.ready()
  if (!known) {
    const workflow = 'service/stems-vocals-accompaniment'
    await engine.submit({ app: 'bench', workflow, inputs: { inputUrl: localFile(song) } })
  }
  // The previous worker was killed after the job ended, before it printed the end.
  if (known?.status === 'SUCCEEDED') console.log(`started\nended ${await hashOf(engine, known)}`)
  await engine.start()
  // The queue's timers do not keep the process alive.
  process.stdin.resume()
}

async function hashOf(engine, job) {
  const hash = createHash('sha256')
  for (const name of Object.keys(job.outputs).sort()) {
    const { body } = await engine.blobs.get(job.outputs[name].key)
    for await (const chunk of body) hash.update(chunk)
  }
  return hash.digest('hex')
}

/** CPU time of a process and its children so far. */
async function processorSeconds(pid) {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim().split(' ').filter(Boolean)
  let seconds = (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
  for (const child of children) seconds += await processorSeconds(child)
  return seconds
}

async function writeSong(path, seconds) {
  const writer = await openWavWriter(path, { sampleRate, channels: 2, format: '16' })
  let state = 1
  for (let second = 0; second < seconds; second++) {
    const planes = [0, 1].map((channel) =>
      Float32Array.from({ length: sampleRate }, (_, i) => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0
        return 0.3 * Math.sin(0.03 * (1 + channel) * i) + 0.2 * (state / 2 ** 32 - 0.5)
      }),
    )
    await writer.write(planes)
  }
  await writer.close()
}

function print(name, run, whole) {
  const ratio = run.processorSeconds / whole.processorSeconds
  const same = run.hash === whole.hash ? 'yes' : 'NO'
  console.log(
    row([
      name,
      run.kills,
      run.processorSeconds.toFixed(1),
      run.runningSeconds.toFixed(1),
      `${ratio.toFixed(3)} / ${(run.runningSeconds / whole.runningSeconds).toFixed(3)}`,
      same,
    ]),
  )
}

function row(cells) {
  return cells.map((cell, index) => (index === 0 ? String(cell).padEnd(18) : String(cell).padStart(14))).join(' ')
}
