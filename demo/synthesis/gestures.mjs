import { consonants, vowels } from './phonemes.mjs'

/**
 * Targets of the vocal tract over time: `{ seconds, formants, voice, breath, hiss, hissHz, burst }`, in order. A
 * syllable's first vowel begins on its beat, so the consonants before it come early; those after it end with it.
 *
 * @param {{ seconds: number, length: number, note: number, sounds: string }[]} syllables sounds separated by spaces, for example 'm u n'
 */
export function gestures(syllables) {
  const targets = [{ seconds: -1, ...silence(vowels['@'].formants) }]
  syllables.forEach((syllable, index) => {
    const sounds = syllable.sounds.split(' ')
    const firstVowel = sounds.findIndex((sound) => sound in vowels)
    const lastVowel = sounds.findLastIndex((sound) => sound in vowels)
    const onset = sounds.slice(0, firstVowel)
    const nucleus = sounds.slice(firstVowel, lastVowel + 1)
    const coda = sounds.slice(lastVowel + 1)
    const next = syllables[index + 1]
    const isTied = next !== undefined && next.seconds - (syllable.seconds + syllable.length) < 0.05
    const nextOnset = isTied ? lengthOf(onsetOf(next.sounds)) : 0
    const end = syllable.seconds + syllable.length - nextOnset
    const codaStart = end - lengthOf(coda)

    let at = syllable.seconds - lengthOf(onset)
    for (const sound of onset) at = push(sound, at, vowels[nucleus[0]].formants)
    // A diphthong stays on its first vowel for most of the note, as singers do.
    nucleus.forEach((sound, place) => {
      const seconds = place === 0 ? syllable.seconds : codaStart - Math.min(0.16, 0.35 * syllable.length) / place
      targets.push({ seconds, formants: vowels[sound].formants, voice: 1, breath: 0.05, hiss: 0 })
    })
    at = codaStart
    for (const sound of coda) at = push(sound, at, vowels[nucleus.at(-1)].formants)
    if (!isTied) targets.push({ seconds: end, ...silence(targets.at(-1).formants) })
  })
  return targets.sort((a, b) => a.seconds - b.seconds)

  function push(sound, at, vowelFormants) {
    const { seconds, formants = vowelFormants, voice, breath = 0.04, hiss = 0, hissHz, burst } = consonants[sound]
    if (burst) {
      targets.push({ seconds: at, formants, voice, breath: 0, hiss: 0 })
      targets.push({
        seconds: at + 0.7 * seconds,
        formants,
        voice: voice * 2,
        breath: 0.35 * burst,
        hiss: burst,
        hissHz,
        sudden: true,
      })
    } else targets.push({ seconds: at, formants, voice, breath, hiss, hissHz })
    return at + seconds
  }
}

function silence(formants) {
  return { formants, voice: 0, breath: 0, hiss: 0 }
}

function onsetOf(sounds) {
  const list = sounds.split(' ')
  return list.slice(
    0,
    list.findIndex((sound) => sound in vowels),
  )
}

function lengthOf(sounds) {
  return sounds.reduce((sum, sound) => sum + consonants[sound].seconds, 0)
}
