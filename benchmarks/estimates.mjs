// The service's estimates of when jobs end, from submission and at every tenth of the time until the end, compared with
// the actual times: songs of 10 s to an hour in several formats, of three applications and two models, which arrive in
// bursts. Estimates, queue and store are the real ones; workers and time are simulated, so the numbers are the same on
// every machine. Times below 10 s count as 10 s: the page says "a few seconds". Exit status 1 if the median ratio is
// above 1.5, or the 90th percentile above 2.
// Options: --songs=N, --seeds=N, --workers=1,4.
import { z } from 'zod'
import { memoryApplications, memoryBlobs, memoryJobs } from '../dist/adapters/memory.js'
import { createEngine, defineWorkflow } from '../dist/index.js'
import { promises, share } from './estimates/promises.mjs'

const [songs] = numbers('songs', '100')
const [seeds] = numbers('seeds', '10')
const parts = { createEngine, defineWorkflow, memoryApplications, memoryBlobs, memoryJobs, z }
const rows = []
for (const workers of numbers('workers', '1,4')) {
  const ratios = []
  let unsaid = 0
  for (let seed = 1; seed <= seeds; seed++) {
    const found = await promises(parts, { songs, workers, seed })
    ratios.push(...found.ratios)
    unsaid += found.unsaid
  }
  ratios.sort((a, b) => a - b)
  rows.push({
    workers,
    said: ratios.length,
    'nothing said': unsaid,
    median: round(share(ratios, 0.5)),
    '90 %': round(share(ratios, 0.9)),
    '99 %': round(share(ratios, 0.99)),
  })
}
console.table(rows)
process.exitCode = rows.some((row) => row.median > 1.5 || row['90 %'] > 2) ? 1 : 0

function numbers(name, fallback) {
  const given = process.argv.find((argument) => argument.startsWith(`--${name}=`))
  return (given?.slice(name.length + 3) ?? fallback).split(',').map(Number)
}

function round(value) {
  return Math.round(value * 100) / 100
}
