import type { Logger } from '../core/engine/ports/logger.js'
import type { Terminal } from './command.js'
import { styled } from './style.js'

const styles = { debug: 'dim', info: 'dim', warn: 'yellow', error: 'red' } as const

/** Log lines for people: time, level, message, then the fields as JSON. Debug lines only if asked for. */
export function stderrLogger(stderr: Terminal['stderr'], { debug = false } = {}): Logger {
  const write = (level: keyof typeof styles) => (fields: Record<string, unknown>, message: string) => {
    const shown = Object.fromEntries(
      Object.entries(fields).map(([name, value]) => [name, value instanceof Error ? errorText(value) : value]),
    )
    const details = Object.keys(shown).length > 0 ? ` ${JSON.stringify(shown)}` : ''
    stderr.write(`${new Date().toISOString()} ${styled(stderr, styles[level], level)} ${message}${details}\n`)
  }
  return { debug: debug ? write('debug') : () => {}, info: write('info'), warn: write('warn'), error: write('error') }
}

/** An error with its causes, which the message for clients leaves out. */
function errorText(error: Error): string {
  return error.cause instanceof Error ? `${error.message} <- ${errorText(error.cause)}` : error.message
}
