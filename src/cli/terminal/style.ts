import { styleText } from 'node:util'
import type { Terminal } from '../command.js'

/** Removes control characters, which a terminal would obey, from untrusted text such as the name of a job. */
export function harmless(text: string): string {
  return text.replace(/\p{Cc}+/gu, ' ')
}

export function jobCount(count: number): string {
  return count === 1 ? '1 job' : `${count} jobs`
}

type Style = 'bold' | 'red' | 'yellow' | 'green' | 'dim'

/** The text in a style if the stream is a terminal and `NO_COLOR` (https://no-color.org) is not set. */
export function styled(stream: Terminal['stdout'] & { isTTY?: boolean }, style: Style, text: string): string {
  const { NO_COLOR, TERM } = process.env
  return stream.isTTY === true && !NO_COLOR && TERM !== 'dumb'
    ? styleText(style, text, { validateStream: false })
    : text
}
