import { spawnSync } from 'node:child_process'
import { createServer } from 'node:net'
import { describe, test } from 'vitest'

/** A server for tests; `release` ends it if it was started for them. */
export interface FoundServer {
  url: string
  release(): Promise<void>
}

/** The reason why there is no server. */
export interface NoServer {
  missing: string
}

/** A private server of one test, which can be stopped, restarted and wiped. */
export interface PrivateServer {
  url: string
  /** Ends the server at once, as in a crash, and restarts it on the same address. */
  restart(): Promise<void>
  /** Ends the server at once; `start` restarts it with its written data. */
  kill(): Promise<void>
  start(): Promise<void>
  /** Ends the server and removes its files. */
  release(): Promise<void>
}

/** Defines the suite, or a skipped test that gives the reason. */
export function describeWith<Servers extends Record<string, FoundServer | NoServer>>(
  name: string,
  servers: Servers,
  body: (servers: { [Name in keyof Servers]: Exclude<Servers[Name], NoServer> }) => void,
): void {
  const missing = Object.values(servers).flatMap((server) => ('missing' in server ? [server.missing] : []))
  if (missing.length > 0) test.skip(`${name} (skipped: ${missing.join('; ')})`, () => {})
  else
    describe(name, () => {
      body(servers as { [Name in keyof Servers]: Exclude<Servers[Name], NoServer> })
    })
}

/** Results of look-ups: a process that has run many files, and holds their memory, takes 20 ms to start another. */
const programs = new Map<string, boolean>()

export function hasProgram(name: string): boolean {
  const known = programs.get(name) ?? spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0
  programs.set(name, known)
  return known
}

export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  if (typeof address !== 'object' || address === null) throw new Error('The operating system gave no port.')
  return address.port
}

/** Resolves once `attempt` does, for servers whose readiness only an attempt can show. */
export async function answering(attempt: () => Promise<unknown>, timeoutMs = 20_000): Promise<void> {
  const giveUpAt = Date.now() + timeoutMs
  for (;;) {
    try {
      await attempt()
      return
    } catch (error) {
      if (Date.now() > giveUpAt) throw error
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}
