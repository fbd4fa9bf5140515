import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { answering, type PrivateServer } from './found-server.js'

// The shell outlives this process by a moment: when its input ends without the word "keep", as it also does after
// `kill -9`, it ends the server and removes the folder. Ctrl-C, which reaches the shell too, only ends its `read`.
const script = `
trap : INT TERM
signal=$1 directory=$2
shift 2
"$@" &
read -r word
kill -"$signal" $!
wait $!
[ "$word" = keep ] || rm -rf "$directory"`

export interface ServerProgram {
  command: string
  args: readonly string[]
  /** Folder of the server's files. */
  directory: string
  /** Signal that ends the server at once. */
  signal: 'QUIT' | 'KILL'
  /** The user to run as. Default: this one. */
  owner?: { uid?: number; gid?: number }
}

/** A server for tests. Server and files are removed as soon as this process ends, in whatever way. */
export class ServerProcess {
  readonly #program: ServerProgram
  #shell: ChildProcess | undefined

  constructor(program: ServerProgram) {
    this.#program = program
  }

  start(): void {
    const { command, args, directory, signal, owner } = this.#program
    this.#shell = spawn('sh', ['-c', script, 'sh', signal, directory, command, ...args], {
      ...owner,
      cwd: directory,
      stdio: ['pipe', 'ignore', 'ignore'],
    })
  }

  /** Ends the server at once, and keeps its files. */
  async kill(): Promise<void> {
    const shell = this.#shell
    this.#shell = undefined
    if (!shell) return
    const ended = once(shell, 'exit')
    shell.stdin?.end('keep\n')
    await ended
  }

  async release(): Promise<void> {
    await this.kill()
    await rm(this.#program.directory, { recursive: true, force: true })
  }
}

/** Starts a private server; resolves once it answers. */
export async function startServer(
  url: string,
  program: ServerProgram,
  ping: (url: string) => Promise<void>,
): Promise<PrivateServer> {
  const own = new ServerProcess(program)
  const server: PrivateServer = {
    url,
    async start() {
      own.start()
      await answering(() => ping(url))
    },
    kill: () => own.kill(),
    async restart() {
      await server.kill()
      await server.start()
    },
    release: () => own.release(),
  }
  await server.start()
  return server
}
