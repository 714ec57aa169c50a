// Sliders and choices for the selected element. They change the text of the file.

import { useComputed } from "@preact/signals";

import { checked, edit, schema, selection } from "../model/state";
import { controlsOf, wordsOf, type Control } from "./controls";
import { tomlOf, written, type Slider } from "./values";

const STEPS = 400;

/** Sliders are logarithmic. For a share, the lowest step is 0. */
function toStep(control: Slider): number {
  if (control.kind === "share" && control.value <= 0) {
    return 0;
  }
  const share = Math.log(control.value / control.low) / Math.log(control.high / control.low);
  return Math.round(Math.max(0, Math.min(1, share)) * STEPS);
}

function fromStep(control: Slider, step: number): number {
  if (control.kind === "share" && step === 0) {
    return 0;
  }
  return control.low * (control.high / control.low) ** (step / STEPS);
}

/** A slider. `scope` tells it from another one for the same key. */
export function SliderRow({ control, scope = "control" }: { control: Slider; scope?: string }) {
  const shown = written(tomlOf(control, control.value));
  const id = `${scope}-${control.key.join("-")}`;
  return (
    <div class="control">
      <label for={id}>{control.label}</label>
      <input
        id={id}
        type="range"
        min="0"
        max={STEPS}
        value={toStep(control)}
        aria-valuetext={shown}
        onInput={(event) => {
          void edit(control.key, tomlOf(control, fromStep(control, Number(event.currentTarget.value))));
        }}
      />
      <output for={id}>{shown}</output>
    </div>
  );
}

export function ChoiceRow({ control, scope = "control" }: { control: Extract<Control, { shape: "choice" }>; scope?: string }) {
  const id = `${scope}-${control.key.join("-")}`;
  return (
    <div class="control">
      <label for={id}>{control.label}</label>
      <select id={id} value={control.value} onChange={(event) => void edit(control.key, JSON.stringify(event.currentTarget.value))}>
        {control.words.map((word) => (
          <option key={word} value={word}>
            {word}
          </option>
        ))}
      </select>
    </div>
  );
}

export function Inspector() {
  const controls = useComputed(() => {
    const selected = selection.value;
    const network = checked.value;
    if (selected === null || network === null) {
      return [];
    }
    return controlsOf(selected, network, wordsOf(schema.value));
  });
  const selected = selection.value;
  if (selected === null) {
    return <p class="faint">Select a node, a link or a flow to change its values.</p>;
  }
  return (
    <section class="inspector" aria-label="Values of the selected element">
      <h2>{selected.kind === "scenario" ? "Scenario" : `${selected.kind} ${selected.name}`}</h2>
      {controls.value.length === 0 && <p class="faint">Its values are in the editor.</p>}
      {controls.value.map((control) =>
        control.shape === "slider" ? (
          <SliderRow key={control.key.join(".")} control={control} />
        ) : (
          <ChoiceRow key={control.key.join(".")} control={control} />
        ),
      )}
    </section>
  );
}
