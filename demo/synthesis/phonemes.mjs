/**
 * Vocal-tract settings for each sound. `formants` are the first five resonances in Hz of a light tenor; `voice`, `breath` and
 * `hiss` are the strengths of the vocal folds, of breath noise at the folds and of noise at the teeth or lips; `hissHz` is the
 * centre of the latter. Consonants also have their length.
 */
export const vowels = {
  a: { formants: [820, 1250, 2750, 3500, 4500] },
  A: { formants: [690, 1220, 2650, 3500, 4500] },
  e: { formants: [580, 1850, 2650, 3600, 4500] },
  i: { formants: [330, 2280, 3050, 3650, 4600] },
  I: { formants: [430, 2030, 2750, 3600, 4500] },
  o: { formants: [520, 890, 2600, 3400, 4400] },
  O: { formants: [640, 960, 2600, 3400, 4400] },
  u: { formants: [370, 930, 2450, 3350, 4400] },
  U: { formants: [450, 1100, 2450, 3400, 4400] },
  '@': { formants: [540, 1450, 2600, 3500, 4500] },
  R: { formants: [500, 1330, 1780, 3300, 4400] },
}

export const consonants = {
  m: { seconds: 0.075, formants: [270, 1050, 2250, 3300, 4300], voice: 0.3 },
  n: { seconds: 0.065, formants: [280, 1600, 2500, 3400, 4400], voice: 0.32 },
  N: { seconds: 0.09, formants: [290, 1900, 2600, 3400, 4400], voice: 0.3 },
  l: { seconds: 0.065, formants: [370, 1150, 2750, 3500, 4500], voice: 0.5 },
  r: { seconds: 0.07, formants: [400, 1150, 1650, 3200, 4300], voice: 0.55 },
  w: { seconds: 0.075, formants: [320, 720, 2350, 3300, 4300], voice: 0.5 },
  y: { seconds: 0.07, formants: [290, 2300, 3050, 3600, 4500], voice: 0.5 },
  v: { seconds: 0.06, formants: [320, 1150, 2350, 3400, 4400], voice: 0.28, hiss: 0.16, hissHz: 6500 },
  D: { seconds: 0.045, formants: [320, 1350, 2550, 3500, 4500], voice: 0.3, hiss: 0.1, hissHz: 6000 },
  z: { seconds: 0.08, formants: [300, 1650, 2600, 3500, 4500], voice: 0.2, hiss: 0.4, hissHz: 7200 },
  s: { seconds: 0.125, formants: [330, 1700, 2650, 3600, 4600], voice: 0, hiss: 0.85, hissHz: 7600 },
  f: { seconds: 0.09, formants: [340, 1150, 2400, 3400, 4400], voice: 0, hiss: 0.3, hissHz: 6800 },
  h: { seconds: 0.08, voice: 0, breath: 0.55 },
  t: { seconds: 0.06, formants: [350, 1750, 2700, 3600, 4600], voice: 0, burst: 0.6, hissHz: 5200 },
  d: { seconds: 0.045, formants: [300, 1700, 2650, 3500, 4500], voice: 0.08, burst: 0.35, hissHz: 4300 },
  k: { seconds: 0.07, formants: [330, 1800, 2350, 3400, 4400], voice: 0, burst: 0.5, hissHz: 2400 },
  g: { seconds: 0.05, formants: [300, 1800, 2350, 3400, 4400], voice: 0.08, burst: 0.3, hissHz: 2200 },
  b: { seconds: 0.045, formants: [290, 850, 2300, 3400, 4400], voice: 0.08, burst: 0.2, hissHz: 1400 },
}
