import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { qrCode } from '../../../src/console/keys/qr-code.js'

const text = 'http://192.168.1.20:8080/v1/console#code='.padEnd(300, 'aB3-_')
const hasReader = spawnSync('zbarimg', ['--version']).status === 0

/** A picture that other programs read. */
function picture(of: string): Buffer {
  const [code, scale, margin] = [qrCode(of), 6, 4]
  const width = (code.length + 2 * margin) * scale
  const pixels = Buffer.alloc(width * width, 255)
  code.forEach((row, y) =>
    row.forEach((isDark, x) => {
      if (!isDark) return
      for (let line = 0; line < scale; line++) {
        const start = ((y + margin) * scale + line) * width + (x + margin) * scale
        pixels.fill(0, start, start + scale)
      }
    }),
  )
  return Buffer.concat([Buffer.from(`P5\n${width} ${width}\n255\n`), pixels])
}

describe('QR codes', () => {
  test('are as large as their text needs', () => {
    expect([17, 18, 106, 230, 231, 1273].map((length) => qrCode('x'.repeat(length)).length)).toEqual([
      21, 25, 37, 53, 57, 117,
    ])
    expect(() => qrCode('x'.repeat(1274))).toThrow(RangeError)
  })

  test('have the modules that zbar has read', () => {
    const modules = qrCode(text)
      .flat()
      .map((isDark) => (isDark ? '1' : '0'))
      .join('')
    expect(createHash('sha256').update(modules).digest('hex').slice(0, 16)).toBe('b90c78655b3e6605')
  })

  // zbar is optional for the tests; the test above keeps what it has read.
  test.skipIf(!hasReader).each([5, 60, 230, 300, 700, 1200])('of %i characters are read by zbar', (length) => {
    const written = text.repeat(5).slice(0, length)
    const { stdout } = spawnSync('zbarimg', ['-q', '--raw', '-'], { input: picture(written), encoding: 'utf8' })
    expect(stdout.trim()).toBe(written)
  })
})
