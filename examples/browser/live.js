// With a bundler: import { createLiveNode } from 'stemwork/browser', without assets.
import { createLiveNode } from './stemwork/dist/browser/index.js'

const element = (selector) => document.querySelector(selector)
const [song, stop, output] = ['input[type=file]', '#stop', 'output'].map(element)
const assets = {
  liveWorker: new URL('stemwork/dist/browser/live-worker.js', document.baseURI),
  liveProcessor: new URL('stemwork/dist/browser/live-processor.js', document.baseURI),
}

song.addEventListener('change', () => song.files[0] && void play(fileSource(song.files[0])))
element('#microphone').addEventListener('click', () => void play(microphone))
element('#tab').addEventListener('click', () => void play(tabSound))
let playing

async function play(openSource) {
  await playing?.close()
  const context = new AudioContext()
  try {
    const source = await openSource(context)
    const live = await createLiveNode(context, { latencyMs: 1000, assets, onLate: showLate })
    for (const [index, stem] of ['vocals', 'accompaniments'].entries()) {
      const slider = element(`#${stem}`)
      const gain = new GainNode(context, { gain: slider.valueAsNumber })
      slider.oninput = () => gain.gain.setTargetAtTime(slider.valueAsNumber, context.currentTime, 0.02)
      live.node.connect(gain, index).connect(context.destination)
    }
    source.node.connect(live.node)
    source.start?.()
    live.ended.catch((error) => (output.textContent = error.message))
    output.textContent = `Separated, ${live.latencySeconds.toFixed(1)} s later.`
    playing = {
      async close() {
        playing = undefined
        live.close()
        for (const track of source.tracks ?? []) track.stop()
        await context.close()
        stop.hidden = true
      },
    }
    stop.hidden = false
    stop.onclick = () => playing?.close()
  } catch (error) {
    output.textContent = error.message
    await context.close()
  }
}

function showLate(seconds) {
  output.textContent = `This device is too slow at times: ${seconds.toFixed(1)} s were played unchanged.`
}

function fileSource(file) {
  return async (context) => {
    const buffer = await context.decodeAudioData(await file.arrayBuffer())
    const node = new AudioBufferSourceNode(context, { buffer })
    return { node, start: () => node.start() }
  }
}

async function microphone(context) {
  const raw = { echoCancellation: false, noiseSuppression: false, autoGainControl: false }
  return streamSource(context, await navigator.mediaDevices.getUserMedia({ audio: raw }))
}

// The browser asks which tab to share, and whether to share its sound; the tab itself falls silent.
async function tabSound(context) {
  const audio = { suppressLocalAudioPlayback: true }
  return streamSource(context, await navigator.mediaDevices.getDisplayMedia({ video: true, audio }))
}

function streamSource(context, stream) {
  if (stream.getAudioTracks().length === 0) throw new Error('This has no sound. Choose a tab and share its sound.')
  return { node: new MediaStreamAudioSourceNode(context, { mediaStream: stream }), tracks: stream.getTracks() }
}
