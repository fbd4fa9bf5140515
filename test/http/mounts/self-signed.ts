import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export function canMakeCertificates(): boolean {
  return spawnSync('openssl', ['version']).status === 0
}

/** A key and a certificate for 127.0.0.1. */
export function selfSigned(): { key: string; cert: string } {
  const directory = mkdtempSync(join(tmpdir(), 'tls-'))
  try {
    execFileSync(
      'openssl',
      [
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:prime256v1',
        '-nodes',
        '-days',
        '1',
        '-subj',
        '/CN=127.0.0.1',
        '-keyout',
        join(directory, 'key'),
        '-out',
        join(directory, 'cert'),
      ],
      { stdio: 'ignore' },
    )
    return { key: readFileSync(join(directory, 'key'), 'utf8'), cert: readFileSync(join(directory, 'cert'), 'utf8') }
  } finally {
    rmSync(directory, { recursive: true })
  }
}
