import { type Logger, textLogger } from '../core/engine/ports/logger.js'
import type { Terminal } from './command.js'
import { styled } from './style.js'

const styles = { debug: 'dim', info: 'dim', warn: 'yellow', error: 'red' } as const

/** Log lines for people. Debug lines only if asked for. */
export function stderrLogger(stderr: Terminal['stderr'], { debug = false } = {}): Logger {
  return textLogger(stderr, debug ? 'debug' : 'info', (level) => styled(stderr, styles[level], level))
}
