// An upload of 1 GiB by tus-js-client over a network that is cut 20 times: how many bytes are sent in all (aim: at most
// 1.05 times the file), whether the stored file has the same hash, and the memory of the service (aim: under 150 MB),
// which is a process of its own. Options: --mebibytes=N, --cuts=N.
import { fork } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { machine, option } from './shared/benchmark.mjs'

const mebibyte = 1024 ** 2
const key = 'a-key-of-the-benchmark'

if (process.send) await beServer(process.argv[2])
else await measure()

async function measure() {
  const { Upload } = await import('tus-js-client')
  const size = option('mebibytes', 1024) * mebibyte
  const cuts = option('cuts', 20)
  const folder = await mkdtemp(join(tmpdir(), 'stemwork-benchmark-'))
  const child = fork(import.meta.filename, [folder])
  try {
    const [{ port }] = await once(child, 'message')
    const path = join(folder, 'song')
    const hash = await randomFile(path, size)
    const network = await cutting(port, size / (cuts + 1))
    console.log(`${machine()}; Node ${process.version}; fsBlobs\n`)
    const startedAt = performance.now()
    let downloadUrl
    await new Promise((resolve, reject) => {
      new Upload(createReadStream(path), {
        endpoint: `http://127.0.0.1:${network.port}/upload/resumable`,
        headers: { authorization: key },
        chunkSize: 32 * mebibyte,
        uploadSize: size,
        retryDelays: Array.from({ length: 10 }, () => 100),
        onAfterResponse: (_request, response) => (downloadUrl ??= response.getHeader('Download-Url')),
        onSuccess: resolve,
        onError: reject,
      }).start()
    })
    const seconds = (performance.now() - startedAt) / 1000
    const [, id] = /uploads\/(.*)\?/.exec(downloadUrl)
    const stored = createHash('sha256')
    await pipeline(createReadStream(join(folder, 'blobs/uploads', id), { end: size - 1 }), stored)
    const isEqual = stored.digest('hex') === hash
    child.send('memory')
    const [{ peakBytes }] = await once(child, 'message')
    const share = network.bytes / size
    console.log(`${size / mebibyte} MiB, ${network.cuts} cuts, ${seconds.toFixed(1)} s`)
    console.log(`bytes sent: ${share.toFixed(4)} of the file; hash ${isEqual ? 'equal' : 'DIFFERENT'}`)
    console.log(`peak memory of the service: ${(peakBytes / mebibyte).toFixed(0)} MiB`)
    if (!isEqual || share > 1.05 || peakBytes > 150e6 || network.cuts < cuts) process.exitCode = 1
    network.close()
  } finally {
    child.kill('SIGKILL')
    await rm(folder, { recursive: true })
  }
}

async function beServer(folder) {
  const { createEngine } = await import('../dist/index.js')
  const { fsBlobs } = await import('../dist/adapters/blobs/fs/index.js')
  const { createHandler, createApplication, issueKey } = await import('../dist/http/index.js')
  const { serve } = await import('../dist/http/mounts/node.js')
  const engine = createEngine({
    blobs: fsBlobs({ directory: join(folder, 'blobs') }),
    limits: { maxFileBytes: 8 * 1024 * mebibyte },
  })
  const { id } = await createApplication(engine.applications, { name: 'Benchmark' })
  await issueKey(engine.applications, id, { key })
  const server = await serve(createHandler(engine, { resumableUploads: true }), { port: 0 })
  let peakBytes = 0
  const look = () => void residentBytes().then((bytes) => (peakBytes = Math.max(peakBytes, bytes)))
  setInterval(look, 20)
  process.on('message', () => process.send({ peakBytes }))
  process.send({ port: server.port })
}

/** Resident memory without mapped files, which processes share. */
async function residentBytes() {
  const status = await readFile('/proc/self/status', 'utf8').catch(() => undefined)
  return status ? Number(/^RssAnon:\s+(\d+)/m.exec(status)[1]) * 1024 : process.memoryUsage.rss()
}

async function randomFile(path, size) {
  const hash = createHash('sha256')
  const file = await open(path, 'w')
  const block = Buffer.alloc(mebibyte)
  for (let at = 0; at < size; at += block.length) {
    crypto.getRandomValues(block.subarray(0, 65_536))
    block.writeDoubleLE(at)
    hash.update(block)
    await file.write(block)
  }
  await file.close()
  return hash.digest('hex')
}

/** A proxy that cuts its connection after this many uploaded bytes since the last cut, and counts all bytes. */
async function cutting(port, bytesBetween) {
  const network = { bytes: 0, cuts: 0, port: 0, close: () => server.close() }
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1')
    const end = () => (client.destroy(), upstream.destroy())
    for (const socket of [client, upstream]) socket.on('error', end).on('close', end)
    upstream.pipe(client)
    client.pipe(upstream)
    client.on('data', (chunk) => {
      network.bytes += chunk.length
      if (network.bytes < (network.cuts + 1) * bytesBetween || network.cuts >= option('cuts', 20)) return
      network.cuts++
      end()
    })
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  network.port = server.address().port
  return network
}
