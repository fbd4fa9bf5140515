import { spawn, spawnSync } from 'node:child_process'
import { type Dirent, readdirSync, readFileSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'

// The entry point of the process that guards one program. The guard leads a separate process group, in which the
// program and its descendants run, and kills the group when the program ends or exceeds a limit, or when the guard's
// standard input closes: no program outlives the process that started it, even after a SIGKILL.

/** The first line on the guard's standard input, as JSON. */
export interface GuardOrder {
  path: string
  args: readonly string[]
  directory: string
  environment: Record<string, string>
  /** Limit of the group's resident memory; enforced where the system reports it (Linux). */
  maxMemoryBytes: number | null
  /** Bytes by which the files of the folder may grow. */
  maxOutputBytes: number
}

/** The guard's report at the end, as JSON on the descriptor `endingDescriptor`. */
export interface ProgramEnding {
  exitCode: number | null
  signal: string | null
  /** The limit that the program exceeded. */
  broke: 'memory' | 'output' | null
  /** Why the program could not be started. */
  startError: string | null
}

export const endingDescriptor = 3

const watchIntervalMs = 250

let order: GuardOrder | undefined
let text = ''
process.stdin.setEncoding('utf8')
process.stdin.on('data', (chunk: string) => {
  if (order) return
  text += chunk
  const end = text.indexOf('\n')
  if (end < 0) return
  order = JSON.parse(text.slice(0, end)) as GuardOrder
  guard(order)
})
process.stdin.on('error', killAll)
process.stdin.on('close', killAll)

function guard({ path, args, directory, environment, maxMemoryBytes, maxOutputBytes }: GuardOrder): void {
  const bytesBefore = bytesIn(directory)
  let broke: ProgramEnding['broke'] = null
  const child = spawn(path, args, {
    cwd: directory,
    env: environment,
    stdio: ['ignore', 'inherit', 'inherit'],
    windowsHide: true,
  })
  const end = (ending: Partial<ProgramEnding>) => {
    const complete: ProgramEnding = { exitCode: null, signal: null, broke, startError: null, ...ending }
    try {
      writeSync(endingDescriptor, JSON.stringify(complete))
    } finally {
      // Includes processes that the program left running in the background.
      killAll()
    }
  }
  const watch = setInterval(() => {
    if (maxMemoryBytes !== null && memoryOfGroup() > maxMemoryBytes) broke = 'memory'
    else if (bytesIn(directory) - bytesBefore > maxOutputBytes) broke = 'output'
    if (broke === null) return
    clearInterval(watch)
    end({ signal: 'SIGKILL' })
  }, watchIntervalMs)
  child.on('error', (error) => end({ startError: error.message }))
  child.on('exit', (exitCode, signal) => end({ exitCode, signal }))

  process.stdin.on('close', () => clearInterval(watch))
}

function killAll(): void {
  if (process.platform === 'win32') {
    spawnSync('taskkill', ['/pid', String(process.pid), '/T', '/F'], { windowsHide: true })
    process.exit()
  }
  process.kill(-process.pid, 'SIGKILL')
}

/** Resident bytes of the program and its descendants, without the guard. */
function memoryOfGroup(): number {
  let kib = 0
  for (const entry of entriesIn('/proc')) {
    if (!/^\d+$/.test(entry.name) || Number(entry.name) === process.pid) continue
    try {
      // The program's name is in parentheses and may contain any text; the fields after it have fixed positions.
      const stat = readFileSync(`/proc/${entry.name}/stat`, 'utf8')
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      if (Number(fields[2]) !== process.pid) continue
      // `status` gives KiB; `stat` counts pages, whose size depends on the machine.
      const status = readFileSync(`/proc/${entry.name}/status`, 'utf8')
      kib += Number(/^VmRSS:\s*(\d+)/m.exec(status)?.[1] ?? 0)
    } catch {
      // The process has ended meanwhile.
    }
  }
  return kib * 1024
}

function bytesIn(directory: string): number {
  let bytes = 0
  for (const entry of entriesIn(directory)) {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) bytes += bytesIn(path)
    else if (entry.isFile()) bytes += statSync(path, { throwIfNoEntry: false })?.size ?? 0
  }
  return bytes
}

function entriesIn(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true })
  } catch {
    return []
  }
}
